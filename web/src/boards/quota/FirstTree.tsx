// How a cluster without quotas gets its first tree: lines that run where this is shown.
import type { Warning } from "../../api/types";
import { FIRST_TREE, QUOTA_DEFINITION } from "../../commands/commands";
import { useWords } from "../../i18n/locale";
import { Command } from "../../parts/Copy";

const isOfTree = (warning: Warning): boolean => warning.code === "crd-missing" && (warning.source ?? "").startsWith("elasticquotatree");

/** The lines to run, in their order: the definition first where the cluster does not serve it. */
export const firstTree = (warnings: readonly Warning[]): readonly string[] => (warnings.some(isOfTree) ? [QUOTA_DEFINITION, FIRST_TREE] : [FIRST_TREE]);

export function FirstTree({ warnings }: { warnings: readonly Warning[] }) {
  const { t } = useWords();
  return (
    <>
      {t("quota.noneNext")}
      {firstTree(warnings).map((text) => (
        <Command key={text} text={text} />
      ))}
    </>
  );
}
