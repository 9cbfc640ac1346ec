// What all plans of components show: the fields of one, its changes, its steps, the equal command.
import type { ChangedObject, ComponentListRow, FieldFault } from "../../api/types";
import { shown } from "../../format/shown";
import { useWords } from "../../i18n/locale";
import { Command } from "../../parts/Copy";
import { faultsOf, Field } from "../../parts/FormDialog";

export const EMPTY = { chart: "", version: "", manifests: "", values: "", namespace: "", deleteDefinitions: false };
export type Draft = typeof EMPTY;
export const FIELDS = ["chart", "version", "manifests", "values", "namespace"];

/** What the server plans of a draft. */
export const orderOf = (row: ComponentListRow, act: string, draft: Draft) => ({
  component: row.id,
  do: act,
  ...draft,
  chart: draft.chart.trim(),
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
  const { t } = useWords();
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
