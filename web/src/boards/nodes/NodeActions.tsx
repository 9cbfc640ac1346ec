// Cordon a node, or uncordon it: for administrators who signed in.
import { useMe } from "../../api/queries";
import { useWords } from "../../i18n/locale";
import { WriteAction } from "../../parts/WriteAction";

export function NodeActions({ name, schedulable }: { name: string; schedulable: boolean }) {
  const { t } = useWords();
  const me = useMe().data;
  if (!me || me.way === "none" || me.user.role !== "admin") return null;
  const path = `/nodes/${encodeURIComponent(name)}`;
  return (
    <p className="write-acts" data-testid="node-actions">
      {schedulable ? (
        <WriteAction slug="cordon" label={t("node.cordon")} question={t("node.cordonQuestion", { node: name })} effect={t("node.cordonEffect")} method="PATCH" path={path} body={{ schedulable: false }} />
      ) : (
        <WriteAction slug="uncordon" label={t("node.uncordon")} question={t("node.uncordonQuestion", { node: name })} effect={t("node.uncordonEffect")} method="PATCH" path={path} body={{ schedulable: true }} />
      )}
    </p>
  );
}
