// Submit a job, a serving job or a cron: a form of the flags of the command, with what it would do beside it. What was typed stays when the write fails.
import { Button } from "antd";
import { type FormEvent, useEffect, useId, useRef, useState } from "react";
import { useJobClone, useJobForms, useMe, usePreview, useWrite, waitForJob, waitForServing, type WriteOrder } from "../../api/queries";
import type { FieldFault, JobClone, JobFlag, JobForm, JobFormList, JobSubmitted, SubmitPreview } from "../../api/types";
import { line, quoted } from "../../commands/commands";
import { shown } from "../../format/shown";
import { useWords } from "../../i18n/locale";
import { Command } from "../../parts/Copy";
import { Faults, faultsOf, Field, WriteFault } from "../../parts/FormDialog";
import { PageHead } from "../../parts/PageHead";
import { Panel } from "../../parts/Panel";
import { Answered, Bones, Empty } from "../../parts/States";
import { useLate } from "../../parts/useLate";
import { navigate } from "../../router/router";
import { useQueryState } from "../../router/usequery";
import { jobId } from "../jobs/JobsBoard";
import { type Draft, draftOf, type FlagValue, flagsOf, type Section, submissionOf, valueOf, versionOf } from "./draft";
import { FlagField } from "./FlagField";
import { Outcome } from "./Outcome";
import "./submit.css";

export function SubmitPage() {
  const { t } = useWords();
  const asked = useJobForms();
  const me = useMe().data;
  const [params] = useQueryState();
  const of = jobId(params.get("clone"));
  const clone = useJobClone(of);
  return (
    <main className="page" data-testid="page-submit">
      <PageHead title={t("title.submit")} answer={undefined} onRefresh={() => void asked.refetch()} />
      {me?.way === "none" ? (
        <Empty why={t("submit.readOnly")}>{t("submit.readOnlyNext")}</Empty>
      ) : (
        <Answered asked={asked} bones={<Bones lines={12} />}>
          {(forms) => (forms.namespaces.length === 0 ? <Empty why={t("submit.noNamespace")}>{t("submit.noNamespaceNext")}</Empty> : of ? <Answered asked={clone} bones={<Bones lines={12} />}>{(found) => <JobEditor key={of.join("/")} forms={forms} clone={found} of={of[2]} />}</Answered> : <JobEditor forms={forms} />)}
        </Answered>
      )}
    </main>
  );
}

/** Others submit jobs meanwhile. */
const VERDICT_MS = 10_000;
const FAMILIES: readonly JobForm["family"][] = ["train", "serve", "cron"];
/** What is missing is no fault before the first try to submit. */
const MISSING = "required";

/** `clone`: what an existing job, `of`, is made of. */
function JobEditor({ forms, clone, of = "" }: { forms: JobFormList; clone?: JobClone; of?: string }) {
  const { t } = useWords();
  const id = useId();
  const [params] = useQueryState();
  const [draft, setDraft] = useState<Draft>(() => (clone ? draftOf(clone.submission, new Date()) : firstDraft(forms, params)));
  const [isTried, setIsTried] = useState(false);
  const [isArriving, setIsArriving] = useState(false);
  const [made, setMade] = useState<JobSubmitted | null>(null);
  const write = useWrite<JobSubmitted>();
  const form = forms.items.find((each) => each.type === draft.type) ?? (forms.items[0] as JobForm);
  const body = submissionOf(draft, form);
  const order: WriteOrder = { method: "POST", path: "/jobs", body };
  const asked = JSON.stringify(order);
  const isStill = useLate(asked) === asked;
  const preview = usePreview<SubmitPreview>(isStill && !write.isPending && !isArriving && !made ? order : null, VERDICT_MS);
  const isLate = !isStill || preview.isFetching;
  const found = preview.data?.fields ?? [];
  const faults = isTried ? found : found.filter(({ rule }) => rule !== MISSING);
  const error = write.error ?? preview.error;
  const change = (changes: Partial<Draft>) => {
    write.reset();
    setDraft({ ...draft, ...changes });
  };
  const setFlag = (name: string, value: FlagValue) => change({ flags: { ...draft.flags, [name]: value } });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setIsTried(true);
    if (write.isPending || isArriving || found.some(({ rule }) => rule === MISSING)) return;
    write.mutate(order, {
      onSuccess: async (created) => {
        if (form.family === "cron") return setMade(created);
        const { namespace, type, name } = created;
        setIsArriving(true);
        if (form.family === "serve") {
          const params = new URLSearchParams({ namespace, type, name });
          await waitForServing(params, String(body.flags?.["version"] ?? ""));
          return navigate(`/serving?${params}`);
        }
        await waitForJob([namespace, type, name]);
        navigate(`/jobs/${[namespace, type, name].map(encodeURIComponent).join("/")}`);
      },
    });
  };
  const field = (flag: JobFlag) => <FlagField key={flag.name} flag={flag} form={form} value={valueOf(draft, flag)} faults={faultsOf(faults, `flags.${flag.name}`)} onChange={(value) => setFlag(flag.name, value)} />;
  const group = (section: Section) => flagsOf(section, form).map(field);
  const more = flagsOf("more", form);
  if (made) {
    const again = () => {
      setIsTried(false);
      setMade(null);
      change({ name: "" });
    };
    return <MadeCron of={made} onAgain={again} />;
  }
  return (
    <form className="submit-page" onSubmit={submit} noValidate aria-labelledby={id}>
      <div className="submit-form">
        {clone && <Cloned of={of} lost={clone.lost} />}
        <Panel slug="job" title={t("submit.job")}>
          <div className="submit-fields">
            <Field label={t("col.jobType")} faults={faultsOf(faults, "type")}>
              <select value={draft.type} onChange={(event) => change({ type: event.target.value })} data-testid="submit-type">
                {FAMILIES.filter((family) => forms.items.some((each) => each.family === family)).map((family) => (
                  <optgroup key={family} label={t(`submit.of.${family}`)}>
                    {forms.items
                      .filter((each) => each.family === family)
                      .map((each) => (
                        <option key={each.type} value={each.type}>
                          {each.isServed ? each.kind : t("submit.notServed", { kind: each.kind })} ({each.type})
                        </option>
                      ))}
                  </optgroup>
                ))}
              </select>
            </Field>
            <Field label={t("col.namespace")} faults={faultsOf(faults, "namespace")}>
              <select className="mono" value={draft.namespace} onChange={(event) => change({ namespace: event.target.value })} data-testid="submit-namespace">
                {namespacesOf(forms, draft).map((name) => (
                  <option key={name} value={name}>
                    {shown(name)}
                  </option>
                ))}
              </select>
            </Field>
            <Field label={t("submit.name")} note="--name" faults={faultsOf(faults, "name")}>
              <input type="text" className="mono" value={draft.name} maxLength={100} autoComplete="off" spellCheck={false} onChange={(event) => change({ name: event.target.value })} data-testid="submit-name" />
            </Field>
            {group("main")}
            <div className="submit-wide">
              <Field label={t("submit.command")} help={form.command} faults={faultsOf(faults, "command")}>
                <textarea className="mono" rows={Math.min(10, Math.max(2, draft.command.split("\n").length))} value={draft.command} spellCheck={false} onChange={(event) => change({ command: event.target.value })} data-testid="submit-command" />
              </Field>
            </div>
          </div>
        </Panel>
        <Sized slug="schedule" title={t("submit.schedule")} fields={group("schedule")} />
        <Sized slug="ports" title={t("serving.ports")} fields={group("ports")} />
        <Sized slug="size" title={t("submit.size")} fields={group("size")} />
        <Sized slug="data" title={t("submit.data")} fields={group("data")} />
        <Sized slug="place" title={t("submit.place")} fields={group("place")} />
        {more.length > 0 && (
          <details className="panel submit-more" data-testid="submit-more" open={isOpen(more, draft, faults) || undefined}>
            <summary>{t("submit.more", { n: more.length })}</summary>
            <div className="submit-fields">{more.map(field)}</div>
          </details>
        )}
      </div>
      <div className="submit-side">
        <div className="submit-acts">
          <Button htmlType="submit" type="primary" loading={write.isPending || isArriving} data-testid="submit-job">
            {t("submit.submit")}
          </Button>
          <span id={id} className="dim">
            {t("submit.hint")}
          </span>
        </div>
        <Faults of={faults.filter(({ path }) => !isShown(path, form))} testId="submit-faults" />
        {error && <WriteFault error={error} />}
        <Outcome preview={preview.data} family={form.family} isLate={isLate} />
      </div>
    </form>
  );
}

/** No page shows a cron: the command that does. */
function MadeCron({ of, onAgain }: { of: JobSubmitted; onAgain: () => void }) {
  const { t } = useWords();
  const title = useRef<HTMLHeadingElement>(null);
  useEffect(() => title.current?.focus(), []);
  return (
    <section className="panel submit-made" data-testid="submit-made">
      <h2 ref={title} tabIndex={-1}>
        {t("submit.cronMade", { name: of.name, namespace: of.namespace })}
      </h2>
      <p>{t("submit.cronNext")}</p>
      <Command text={line("arena cron get", quoted(of.name), "-n", quoted(of.namespace))} />
      <div>
        <Button onClick={onAgain} data-testid="submit-again">
          {t("submit.again")}
        </Button>
      </div>
    </section>
  );
}

function Cloned({ of, lost }: { of: string; lost: readonly string[] }) {
  const { t } = useWords();
  return (
    <div className="banner" role="status" data-testid="submit-clone">
      <span>
        {t("submit.cloneOf", { job: of })} {lost.length > 0 && t("submit.lost")}
        {lost.length > 0 && (
          <ul className="mono submit-lost">
            {lost.map((path) => (
              <li key={path}>{shown(path)}</li>
            ))}
          </ul>
        )}
      </span>
    </div>
  );
}

function Sized({ slug, title, fields }: { slug: string; title: string; fields: readonly React.ReactNode[] }) {
  if (fields.length === 0) return null;
  return (
    <Panel slug={slug} title={title}>
      <div className="submit-fields">{fields}</div>
    </Panel>
  );
}

function firstDraft(forms: JobFormList, params: URLSearchParams): Draft {
  const type = params.get("type") ?? "";
  const namespace = params.get("namespace") ?? "";
  const first = forms.items.find((each) => each.isServed) ?? forms.items[0];
  return {
    type: forms.items.some((each) => each.type === type) ? type : (first?.type ?? ""),
    namespace: forms.namespaces.includes(namespace) ? namespace : (forms.namespaces.find((each) => each === "default") ?? forms.namespaces[0] ?? ""),
    name: params.get("name") ?? "",
    command: "",
    flags: {},
    version: versionOf(new Date()),
  };
}

const namespacesOf = (forms: JobFormList, draft: Draft): readonly string[] => (forms.namespaces.includes(draft.namespace) ? forms.namespaces : [...forms.namespaces, draft.namespace]);

/** Rare flags are shown at once where one of them is set, or is wrong. */
const isOpen = (flags: readonly JobFlag[], draft: Draft, faults: readonly FieldFault[]): boolean => flags.some((flag) => draft.flags[flag.name] !== undefined || faults.some(({ path }) => path === `flags.${flag.name}`));

const isShown = (path: string, form: JobForm): boolean => /^(type|namespace|name|command)$/.test(path) || form.flags.some((flag) => path === `flags.${flag.name}`);
