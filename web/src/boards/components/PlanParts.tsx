// What all plans of components show: the fields of one, its changes, its steps, the equal command.
import type { ChangedObject, ComponentListRow, FieldFault } from "../../api/types";
import { shown } from "../../format/shown";
import { useWords } from "../../i18n/locale";
import { Command } from "../../parts/Copy";
import { faultsOf, Field } from "../../parts/FormDialog";

export interface Draft {
  readonly chart: string;
  readonly version: string;
  readonly manifests: string;
  readonly values: string;
  readonly namespace: string;
  readonly deleteDefinitions: boolean;
  /** Texts of single values of the chart, by name. */
  readonly settings: Readonly<Record<string, string>>;
}
const EMPTY: Draft = { chart: "", version: "", manifests: "", values: "", namespace: "", deleteDefinitions: false, settings: {} };

/** Before anything is typed: the chart's address, if the console knows where charts are. */
export const draftOf = (row: Pick<ComponentListRow, "chart">): Draft => ({ ...EMPTY, chart: row.chart });
const FIELDS = ["chart", "version", "manifests", "values", "namespace", "settings"];

/** Whether the fault of this path stands at a field of the form. */
export const isOfField = (path: string): boolean => FIELDS.includes(path.split(".")[0] ?? "");

/** What the server plans of a draft. */
export const orderOf = (row: ComponentListRow, act: string, draft: Draft) => ({
  component: row.id,
  do: act,
  ...draft,
  chart: act === "remove" ? "" : draft.chart.trim(),
  version: draft.version.trim(),
  namespace: draft.namespace.trim(),
});

interface Fields {
  row: ComponentListRow;
  draft: Draft;
  /** Before each path of a fault, and in each test id. */
  prefix?: string;
  faults: readonly FieldFault[];
  hasNamespace: boolean;
  onDraft: (draft: Draft) => void;
}

/** What a deployment or an upgrade is made of. */
export function SourceFields({ row, draft, prefix = "", faults, hasNamespace, onDraft }: Fields) {
  const { t, locale } = useWords();
  const of = (key: string) => faultsOf(faults, `${prefix}${key}`);
  const test = (key: string) => (prefix ? `plan-${row.id}-${key}` : `plan-${key}`);
  const line = (key: "chart" | "version" | "namespace", placeholder: string) => (
    <input type="text" className="mono" value={draft[key]} maxLength={500} placeholder={placeholder} onChange={(event) => onDraft({ ...draft, [key]: event.target.value })} data-testid={test(key)} />
  );
  const area = (key: "manifests" | "values") => (
    <textarea className="mono" rows={4} spellCheck={false} value={draft[key]} onChange={(event) => onDraft({ ...draft, [key]: event.target.value })} data-testid={test(key)} />
  );
  return (
    <>
      {row.source === "chart" && (
        <>
          <Field label={t("components.chart")} hint={t("components.chartHint")} faults={of("chart")}>
            {line("chart", `oci://registry.example.com/charts/${row.id}`)}
          </Field>
          <Field label={t("components.chartVersion")} hint={t("components.chartVersionHint")} faults={of("version")}>
            {line("version", row.available)}
          </Field>
        </>
      )}
      {(row.source === "chart" || row.source === "part") && (
        <Field label={t("components.values")} hint={t(row.source === "part" ? "components.partValuesHint" : "components.valuesHint")} faults={of("values")}>
          {area("values")}
        </Field>
      )}
      {row.source === "chart" && row.fields.length > 0 && (
        <details open={of("settings").length > 0 || undefined} data-testid={test("settings")}>
          <summary>{t("components.settings")}</summary>
          {row.fields.map((field) => (
            <Field key={field.name} label={locale.startsWith("zh") ? field.titleZh : field.title} note={field.name} faults={of(`settings.${field.name}`)} {...(field.type === "list" || field.type === "mapping" ? { hint: t("components.yaml") } : {})}>
              <SettingInput type={field.type} value={draft.settings[field.name] ?? ""} test={test(field.name)} onChange={(text) => onDraft({ ...draft, settings: { ...draft.settings, [field.name]: text } })} />
            </Field>
          ))}
        </details>
      )}
      {row.source === "manifests" && (
        <Field label={t("components.manifests")} hint={t("components.manifestsHint")} faults={of("manifests")}>
          {area("manifests")}
        </Field>
      )}
      {hasNamespace && row.source !== "part" && (
        <Field label={t("col.namespace")} hint={t("components.namespaceHint")} faults={of("namespace")}>
          {line("namespace", "")}
        </Field>
      )}
    </>
  );
}

/** One value of a chart; empty: as the chart has it. */
function SettingInput({ type, value, test, onChange }: { type: string; value: string; test: string; onChange: (text: string) => void }) {
  if (type === "boolean")
    return (
      <select value={value} onChange={(event) => onChange(event.target.value)} data-testid={test}>
        <option value="">-</option>
        <option value="true">true</option>
        <option value="false">false</option>
      </select>
    );
  if (type === "list" || type === "mapping") return <textarea className="mono" rows={3} spellCheck={false} value={value} onChange={(event) => onChange(event.target.value)} data-testid={test} />;
  return <input type="text" className="mono" inputMode={type === "number" ? "numeric" : "text"} value={value} maxLength={500} onChange={(event) => onChange(event.target.value)} data-testid={test} />;
}

export function Steps({ titles }: { titles: readonly string[] }) {
  const { t } = useWords();
  return (
    <details>
      <summary>{t("components.steps", { n: titles.length })}</summary>
      <ol className="plan-steps" lang="en">
        {titles.map((title, index) => (
          // Two steps may have one title; their order never changes.
          // oxlint-disable-next-line react/no-array-index-key -- as above
          <li key={`${index} ${title}`}>{shown(title)}</li>
        ))}
      </ol>
    </details>
  );
}

/** Back to the fields: a plan that could not be started is made anew. */
export function PlanAgain({ onBack }: { onBack: () => void }) {
  const { t } = useWords();
  return (
    <p>
      <button type="button" className="link" onClick={onBack} data-testid="plan-again">
        {t("components.planAgain")}
      </button>
    </p>
  );
}

export function EqualLine({ text }: { text: string }) {
  const { t } = useWords();
  return (
    <div className="form-field" data-testid="plan-line">
      <span className="form-label">{t("command.equal")}</span>
      <Command text={text} />
    </div>
  );
}

const SHOWN_MAX = 200;

/** `level`: of its heading. */
export function Changes({ of: changes, same, level = 3 }: { of: readonly ChangedObject[]; same: number; level?: 3 | 4 }) {
  const { t, code } = useWords();
  const Head = level === 4 ? "h4" : "h3";
  return (
    <section data-testid="plan-changes">
      <Head>{t("components.changes", { n: changes.length })}</Head>
      {/* It scrolls, also by the keyboard. */}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- as above */}
      <ul className="changes" tabIndex={0} aria-label={t("components.changes", { n: changes.length })}>
        {changes.slice(0, SHOWN_MAX).map((each) => (
          <li key={`${each.do} ${each.kind} ${each.namespace}/${each.name}`} data-do={each.do}>
            <span className="effect-verb">{code("components.do", each.do, {}, each.do)}</span> {shown(each.kind)} <span className="mono">{shown(each.namespace ? `${each.namespace}/${each.name}` : each.name)}</span>
            {each.fields.length > 0 && (
              <dl>
                {each.fields.map(({ path, old, new: now }) => (
                  <FieldChange key={path} path={path} old={old} now={now} />
                ))}
              </dl>
            )}
          </li>
        ))}
        {changes.length > SHOWN_MAX && <li className="dim">{t("form.more", { n: changes.length - SHOWN_MAX })}</li>}
      </ul>
      {same > 0 && <p className="dim">{t("components.same", { n: same })}</p>}
    </section>
  );
}

function FieldChange({ path, old, now }: { path: string; old: string; now: string }) {
  return (
    <>
      <dt className="mono">{shown(path)}</dt>
      <dd className="mono">
        <del>{shown(old) || "-"}</del> → <ins>{shown(now) || "-"}</ins>
      </dd>
    </>
  );
}
