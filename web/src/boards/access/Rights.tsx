// What I may do: in the console by its own rule, and with kubectl by the roles that are bound to me.
import type { ReactNode } from "react";
import { useRights } from "../../api/queries";
import type { ConsoleRight, KubectlRight, KubectlRule } from "../../api/types";
import { shown } from "../../format/shown";
import { useWords } from "../../i18n/locale";
import { Panel } from "../../parts/Panel";
import { Answered, Bones } from "../../parts/States";

export function Rights() {
  const { t } = useWords();
  const asked = useRights();
  return (
    <>
      <Panel slug="access-rights" title={t("rights.console")}>
        <Answered asked={asked} bones={<Bones lines={6} />}>
          {({ console }) => <ConsoleRights rows={console} />}
        </Answered>
      </Panel>
      {asked.data && asked.data.kubectl.length > 0 && (
        <Panel slug="access-kubectl" title={t("rights.kubectl")}>
          <KubectlRights rows={asked.data.kubectl} />
        </Panel>
      )}
    </>
  );
}

/** `of`: the head of the first column. */
function RightsTable({ slug, of, children }: { slug: string; of: string; children: ReactNode }) {
  const { t } = useWords();
  return (
    <table className="health rights" data-testid={`table-${slug}`}>
      <thead>
        <tr>
          <th scope="col">{of}</th>
          <th scope="col">{t("rights.where")}</th>
          <th scope="col">{t("rights.may")}</th>
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  );
}

function ConsoleRights({ rows }: { rows: readonly ConsoleRight[] }) {
  const { t, code } = useWords();
  return (
    <RightsTable slug="rights" of={t("rights.what")}>
      {rows.map((each) => (
        <tr key={`${each.resource} ${each.where}`}>
          <th scope="row">{code("rights.of", each.resource.replaceAll(" ", "-"), {}, each.resource)}</th>
          <td data-of={t("rights.where")}>{t(each.where === "own" ? "rights.own" : "rights.everywhere")}</td>
          <td data-of={t("rights.may")}>{each.verbs.map((verb) => code("rights.verb", verb, {}, verb)).join(", ")}</td>
        </tr>
      ))}
    </RightsTable>
  );
}

function KubectlRights({ rows }: { rows: readonly KubectlRight[] }) {
  const { t } = useWords();
  return (
    <RightsTable slug="kubectl" of={t("rights.role")}>
      {rows.map((each) => (
        <tr key={each.role}>
          <th scope="row" className="mono">
            {shown(each.role)}
          </th>
          <td data-of={t("rights.where")}>
            {each.isClusterWide && <div>{t("rights.clusterWide")}</div>}
            {each.namespaces.length > 0 && <div className="mono">{each.namespaces.map(shown).join(", ")}</div>}
          </td>
          <td data-of={t("rights.may")}>{each.rules.length === 0 ? t("rights.unknown") : <Rules rules={each.rules} />}</td>
        </tr>
      ))}
    </RightsTable>
  );
}

/** Rules with the same verbs are one line. */
function Rules({ rules }: { rules: readonly KubectlRule[] }) {
  const { t } = useWords();
  const words: Readonly<Record<string, string>> = { write: t("rights.write"), read: t("rights.read") };
  const word = ({ kind, verbs }: KubectlRule) => words[kind] ?? verbs.join(", ");
  const lines = new Map<string, string[]>();
  for (const rule of rules) lines.set(word(rule), [...(lines.get(word(rule)) ?? []), ...rule.resources]);
  return (
    <dl className="rights-rules">
      {[...lines].map(([verbs, resources]) => (
        <div key={verbs}>
          <dt className={Object.values(words).includes(verbs) ? undefined : "mono"}>{verbs}</dt>
          <dd className="mono">{resources.map(shown).join(", ")}</dd>
        </div>
      ))}
    </dl>
  );
}
