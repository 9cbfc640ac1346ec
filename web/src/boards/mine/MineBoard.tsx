// My work: what I can start now, my waiting jobs and their queue, my quota, and my jobs. A researcher's first page.
import { useEffect, useMemo } from "react";
import { useJobs, useMe, useMine } from "../../api/queries";
import type { MyWork } from "../../api/types";
import { FIRST_JOB } from "../../commands/commands";
import { gpus } from "../../format/format";
import { shown } from "../../format/shown";
import { useWords } from "../../i18n/locale";
import { Command } from "../../parts/Copy";
import { PageHead } from "../../parts/PageHead";
import { Answered, Bones, Empty, FailedRefresh, Warnings } from "../../parts/States";
import { Link } from "../../router/Link";
import { listQuery } from "../../router/query";
import { navigate } from "../../router/router";
import { useQueryState } from "../../router/usequery";
import { OneChoice } from "../../table/Filters";
import { useKept } from "../../table/useKept";
import { jobKey } from "../jobs/columns";
import { JobTable } from "../jobs/JobTable";
import { Leaves } from "./Leaves";
import { jobsQueryOf, lastPerson, type Person, personIn, queryOf, remember } from "./me";
import { Starts } from "./Starts";
import { Waits } from "./Waits";

export function MineBoard() {
  const { t } = useWords();
  const [params, set] = useQueryState();
  const me = useMemo(() => personIn(params), [params]);
  const signedIn = useMe().data;
  useEffect(() => {
    if (me || !signedIn) return;
    const last = signedIn.user.id ? { user: signedIn.user.id } : lastPerson();
    if (last) set({ ...last }, "replace");
  }, [me, signedIn, set]);
  const asked = useMine(useMemo(() => queryOf(me), [me]));
  const choose = (person: Person | null) => {
    remember(person);
    set({ user: null, namespace: null, page: null, ...person });
  };
  return (
    <main className="page" data-testid="page-mine">
      <PageHead title={t("title.mine")} answer={asked.data} onRefresh={() => void asked.refetch()} />
      <div className="filters">
        <OneChoice name="user" label={t("col.user")} choices={asked.data?.users ?? []} value={me && "user" in me ? me.user : null} onChoose={(user) => choose(user ? { user } : null)} />
        <OneChoice
          name="namespace"
          label={t("col.namespace")}
          choices={asked.data?.allNamespaces ?? []}
          value={me && "namespace" in me ? me.namespace : null}
          onChoose={(namespace) => choose(namespace ? { namespace } : null)}
        />
        {signedIn?.way === "none" && <span className="hint">{t("mine.signin")}</span>}
      </div>
      <Warnings of={[asked.data?.warnings]} />
      <FailedRefresh asked={[asked]} />
      <Answered asked={asked} bones={<Bones lines={8} />}>
        {(mine) => (me ? <Work mine={mine} me={me} /> : <Unnamed mine={mine} onChoose={choose} />)}
      </Answered>
    </main>
  );
}

function Unnamed({ mine, onChoose }: { mine: MyWork; onChoose: (person: Person) => void }) {
  const { t } = useWords();
  const people = mine.users.length > 0 ? mine.users.map((user): [string, Person] => [user, { user }]) : mine.allNamespaces.map((namespace): [string, Person] => [namespace, { namespace }]);
  return (
    <Empty why={t(people.length > 0 ? "mine.who" : "mine.nobody")}>
      <div className="actions">
        {people.slice(0, 12).map(([name, person]) => (
          <button key={name} type="button" className="toggle mono" onClick={() => onChoose(person)}>
            {shown(name)}
          </button>
        ))}
        {people.length === 0 && <Command text={FIRST_JOB} />}
      </div>
    </Empty>
  );
}

function Work({ mine, me }: { mine: MyWork; me: Person }) {
  const { t } = useWords();
  return (
    <>
      <Starts mine={mine} />
      {mine.waits.length > 0 && <Waits waits={mine.waits} />}
      {mine.leaves.length > 0 && <Leaves leaves={mine.leaves} />}
      {mine.held.pods > 0 && (
        <p className="hint-line">
          <Link to={`/gpus?${queryOf(me).toString()}`}>{t("mine.holds", { pods: mine.held.pods, gpus: gpus(mine.held.gpus) })}</Link>
        </p>
      )}
      <Jobs me={me} />
    </>
  );
}

function Jobs({ me }: { me: Person }) {
  const { t } = useWords();
  const [params] = useQueryState();
  const asking = useMemo(() => new URLSearchParams([...jobsQueryOf(me), ...listQuery(params, ["sort"])]), [me, params]);
  const asked = useKept(useJobs(asking), asking);
  return (
    <JobTable
      slug="my-jobs"
      title={t("mine.jobs")}
      asked={asked}
      asking={asked.shown}
      filters={[]}
      onOpen={(job) => navigate(`/jobs/${jobKey(job).split("/").map(encodeURIComponent).join("/")}`)}
      none={
        <Empty why={t("mine.noJobs")}>
          <Command text={FIRST_JOB} />
        </Empty>
      }
    />
  );
}
