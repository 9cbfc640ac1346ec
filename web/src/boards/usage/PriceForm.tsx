// A new price of nodes, or the end of the prices of a matcher. The server checks while one types; nothing is written before.
import { useId, useState } from "react";
import { usePreview, useWrite, type WriteOrder } from "../../api/queries";
import type { FieldFault, PriceList, PricePreview, PriceWritten } from "../../api/types";
import { useNow } from "../../app/clock";
import { useWords } from "../../i18n/locale";
import { sentenceWords } from "../../i18n/sentences";
import { allFaults, Faults, faultsOf, Field, FormDialog } from "../../parts/FormDialog";
import { useLate } from "../../parts/useLate";
import { type Matcher, matcherText, parseMatcher } from "./matcher";
import { dayOf } from "./period";
import { labelsText } from "./words";

export interface PriceStart {
  readonly isEnd: boolean;
  readonly matcher: Matcher;
}

interface Draft {
  readonly nodes: string;
  readonly currency: string;
  readonly nodeHour: string;
  readonly listNodeHour: string;
  readonly share: string;
  readonly validFrom: string;
  readonly note: string;
}

const FIELDS = ["matcher", "currency", "nodeHour", "listNodeHour", "gpuSharePercent", "validFrom", "note"] as const;
const HOUR_MS = 3_600_000;

function orderOf(draft: Draft, isEnd: boolean): WriteOrder | null {
  const matcher = parseMatcher(draft.nodes);
  if (matcher === null || draft.validFrom === "") return null;
  const { validFrom, note } = draft;
  if (isEnd) return { method: "POST", path: "/prices", body: { matcher, validFrom, note, ended: true } };
  if (draft.nodeHour.trim() === "") return null;
  const share = draft.share.trim() === "" ? null : Number(draft.share);
  return { method: "POST", path: "/prices", body: { matcher, validFrom, note, currency: draft.currency.trim(), nodeHour: draft.nodeHour.trim(), listNodeHour: draft.listNodeHour.trim(), gpuSharePercent: share } };
}

export function PriceForm({ start, prices, onClose }: { start: PriceStart; prices: PriceList; onClose: () => void }) {
  const words = useWords();
  const { t } = words;
  const now = useNow(HOUR_MS);
  const [draft, setDraft] = useState<Draft>({ nodes: matcherText(start.matcher), currency: prices.currency, nodeHour: "", listNodeHour: "", share: "", validFrom: dayOf(now), note: "" });
  const order = orderOf(draft, start.isEnd);
  const asked = JSON.stringify(order?.body);
  const isStill = useLate(asked) === asked;
  const preview = usePreview<PricePreview>(isStill ? order : null);
  const write = useWrite<PriceWritten>();
  const found = order ? preview.data : undefined;
  const faults = allFaults(write.error, found && { ...found, effects: [] });
  const isReady = order !== null && isStill && found?.valid === true && !preview.isPlaceholderData;
  return (
    <FormDialog
      title={t(start.isEnd ? "prices.endTitle" : "prices.addTitle")}
      word={t(start.isEnd ? "prices.end" : "prices.add")}
      isReady={isReady}
      isBusy={write.isPending}
      error={write.error ?? preview.error}
      testId="price-form"
      onSubmit={() => order && write.mutate(order, { onSuccess: onClose })}
      onClose={onClose}
    >
      <p className="dim">{t(start.isEnd ? "prices.endWhy" : "prices.addWhy", { zone: prices.zone })}</p>
      <PriceFields draft={draft} start={start} prices={prices} faults={faults} set={(part) => setDraft({ ...draft, ...part })} />
      <Faults of={faults.filter(({ path }) => !FIELDS.some((field) => path === field || path.startsWith(`${field}.`)))} />
      {found?.warnings.map((warning) => (
        <p key={warning.code} className="note-text" role="status">
          {sentenceWords(warning, words)}
        </p>
      ))}
    </FormDialog>
  );
}

interface FieldProps {
  draft: Draft;
  start: PriceStart;
  prices: PriceList;
  faults: readonly FieldFault[];
  set: (part: Partial<Draft>) => void;
}

function PriceFields({ draft, start, prices, faults, set }: FieldProps) {
  const { t } = useWords();
  const list = useId();
  const text = (key: keyof Draft, placeholder = "", options?: string) => (
    <input type="text" className="mono" value={draft[key]} maxLength={1000} placeholder={placeholder} autoComplete="off" list={options} onChange={(event) => set({ [key]: event.target.value })} data-testid={`price-${key}`} />
  );
  const isReadable = parseMatcher(draft.nodes) !== null;
  return (
    <>
      <Field label={t("prices.nodes")} hint={t(isReadable ? "prices.nodesHint" : "prices.nodesUnreadable")} faults={faultsOf(faults, "matcher")}>
        {text("nodes", t("usage.everyNode"), list)}
      </Field>
      <datalist id={list}>
        {prices.classes.map(({ labels }) => (
          <option key={matcherText(labels)} value={matcherText(labels)}>
            {labelsText(labels, t)}
          </option>
        ))}
      </datalist>
      {!start.isEnd && (
        <>
          <Field label={t("prices.nodeHour")} hint={t("prices.nodeHourHint")} faults={faultsOf(faults, "nodeHour")}>
            {text("nodeHour", "12.50")}
          </Field>
          <Field label={t("prices.currency")} faults={faultsOf(faults, "currency")}>
            {text("currency", "CNY")}
          </Field>
          <Field label={t("prices.listNodeHour")} hint={t("prices.listHint")} faults={faultsOf(faults, "listNodeHour")}>
            {text("listNodeHour")}
          </Field>
          <Field label={t("prices.gpuShare")} hint={t("prices.shareHint")} faults={faultsOf(faults, "gpuSharePercent")}>
            {text("share", "90")}
          </Field>
        </>
      )}
      <Field label={t("prices.validFrom")} hint={t("prices.validHint", { zone: prices.zone })} faults={faultsOf(faults, "validFrom")}>
        <input type="date" value={draft.validFrom} onChange={(event) => set({ validFrom: event.target.value })} data-testid="price-validFrom" />
      </Field>
      <Field label={t("prices.note")} faults={faultsOf(faults, "note")}>
        {text("note")}
      </Field>
    </>
  );
}
