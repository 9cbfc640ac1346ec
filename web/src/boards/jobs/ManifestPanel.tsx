// The job's object as the API server has it, without secret values. Asked when the tab is opened.
import { useJobManifest } from "../../api/queries";
import { shown } from "../../format/shown";
import { useWords } from "../../i18n/locale";
import { Copy } from "../../parts/Copy";
import { Icon } from "../../parts/Icon";
import { Answered, Bones } from "../../parts/States";
import { saveText } from "../../parts/save";
import type { KeptJobId } from "./JobsBoard";

export function ManifestPanel({ id }: { id: KeptJobId }) {
  const { t } = useWords();
  const asked = useJobManifest(id);
  return (
    <Answered asked={asked} bones={<Bones lines={12} />}>
      {(answer) => (
        <>
          <div className="log-tools">
            <span className="dim">{answer.redacted.length > 0 ? t("yaml.redacted", { count: answer.redacted.length }) : t("yaml.whole")}</span>
            <span className="end">
              <Copy text={answer.yaml} label={t("yaml.copy")} />
              <button type="button" className="tool" aria-label={t("yaml.download")} title={t("yaml.download")} onClick={() => saveText(`${id[2]}.yaml`, answer.yaml)}>
                <Icon name="download" />
              </button>
            </span>
          </div>
          {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it scrolls, and must by keyboard, too */}
          <pre className="manifest" tabIndex={0} aria-label={t("job.yaml")} data-testid="job-manifest">
            {shown(answer.yaml)}
          </pre>
        </>
      )}
    </Answered>
  );
}
