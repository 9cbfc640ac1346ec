// The line of filters above a board. Names like `gpu_node` are the words of the address, so they stay as they are in every language.
import { Input, Select } from "antd";
import { type ReactNode, useRef, useState } from "react";
import { useWords } from "../i18n/locale";
import { filtered, type SetQuery } from "../router/usequery";

interface Shared {
  params: URLSearchParams;
  set: SetQuery;
}

interface ChoiceProps extends Shared {
  name: string;
  label?: string;
  choices: readonly string[];
  nameOf?: (choice: string) => string;
  width?: number;
  /** Called with what is typed, for lists longer than the choices at hand. */
  onSearch?: (typed: string) => void;
  /** Shown below the choices. */
  foot?: string;
}

/** Room for the word, one chosen value, and how many more. */
const CHOSEN_WIDTH = 200;
const TAG_LETTERS = 13;
/** Chinese words are a little wider than the widths were measured for. */
const WORDS_MORE = 6;

/** A multi-select over one repeated query key. Values of the address that are no choice (yet) stay selected. */
export function Choice({ name, label, choices, nameOf, params, set, width = 160, onSearch, foot }: ChoiceProps) {
  const { t } = useWords();
  const value = params.getAll(name);
  const options = [...new Set([...choices, ...value])].map((c) => ({ value: c, label: nameOf ? nameOf(c) : c || t("filter.none") }));
  return (
    <Select
      mode="multiple"
      maxTagCount={1}
      maxTagTextLength={TAG_LETTERS}
      tagRender={({ label: text }) => <span className="tag">{text}</span>}
      maxTagPlaceholder={(hidden) => `+${hidden.length}`}
      allowClear
      showSearch
      prefix={<span className={label ? "filter-word" : "filter-word mono"}>{label ?? name}</span>}
      aria-label={label ?? name}
      data-testid={`filter-${name}`}
      placeholder={t("filter.all")}
      style={{ width: value.length > 0 ? Math.max(width, CHOSEN_WIDTH) : width + WORDS_MORE }}
      popupMatchSelectWidth={false}
      value={value}
      options={options}
      popupRender={foot ? (menu) => <Footed menu={menu} foot={foot} /> : undefined}
      onSearch={onSearch}
      onChange={(next: string[]) => set(filtered({ [name]: next }))}
    />
  );
}

interface OneProps {
  name: string;
  label: string;
  choices: readonly string[];
  value: string | null;
  onChoose: (value: string | null) => void;
}

/** One of many, or none. */
export function OneChoice({ name, label, choices, value, onChoose }: OneProps) {
  const { t } = useWords();
  const options = [...new Set([...choices, ...(value ? [value] : [])])].map((each) => ({ value: each, label: each }));
  return (
    <Select
      allowClear
      showSearch
      prefix={<span className="filter-word">{label}</span>}
      aria-label={label}
      data-testid={`one-${name}`}
      placeholder={t("filter.none")}
      style={{ width: CHOSEN_WIDTH }}
      popupMatchSelectWidth={false}
      value={value}
      options={options}
      onChange={(next: string | undefined) => onChoose(next ?? null)}
    />
  );
}

function Footed({ menu, foot }: { menu: ReactNode; foot: string }) {
  return (
    <>
      {menu}
      <div className="filter-foot dim">{foot}</div>
    </>
  );
}

const TYPING_MS = 250;

/** Free text. Typing replaces the address after a pause, so Back leaves the search in one step. */
export function SearchFilter({ params, set, placeholder }: Shared & { placeholder: string }) {
  const inAddress = params.get("q") ?? "";
  const [draft, setDraft] = useState({ text: inAddress, since: inAddress });
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const text = draft.since === inAddress ? draft.text : inAddress;
  const change = (value: string) => {
    setDraft({ text: value, since: inAddress });
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      setDraft({ text: value, since: value });
      set(filtered({ q: value }), inAddress ? "replace" : "push");
    }, TYPING_MS);
  };
  return <Input allowClear value={text} onChange={(event) => change(event.target.value)} placeholder={placeholder} aria-label={placeholder} style={{ width: "100%", maxWidth: 180 }} data-testid="filter-q" />;
}
