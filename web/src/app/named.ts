// Which pages does a word of the console lead to? Boards, lists by status, and what has a command and no page: by their words in both languages.
import { catalogues, isMessageKey, type MessageKey } from "../i18n/translate";
import { BOARDS } from "./boards";
import type { Findable } from "./finding";

type Translate = (key: MessageKey) => string;

interface StatusList {
  readonly path: string;
  readonly board: MessageKey;
  /** The filter of the list. */
  readonly filter: string;
  /** Values of the filter; `status.<value>` is the word. */
  readonly words: readonly string[];
}

const LISTS: readonly StatusList[] = [
  { path: "/jobs", board: "board.jobs", filter: "job_status", words: ["Pending", "Running", "Succeeded", "Failed"] },
  { path: "/nodes", board: "board.nodes", filter: "status", words: ["Ready", "NotReady", "Unknown"] },
  { path: "/serving", board: "board.serving", filter: "status", words: ["Ready", "NotReady"] },
  { path: "/datasets", board: "board.datasets", filter: "status", words: ["Ready", "NotReady"] },
  { path: "/devices", board: "board.devices", filter: "status", words: ["free", "allocated", "shared", "unhealthy", "draining", "unknown", "closed", "unreachable"] },
];

const PAGES: readonly (readonly [path: string, title: MessageKey])[] = [...BOARDS.map(({ path, title }) => [path, title] as const), ["/quota/tree", "title.quotaTree"]];

/** What has no page: the command that shows it. */
const COMMANDS: readonly (readonly [word: MessageKey, command: string])[] = [
  ["find.datasets", "arena data list -A"],
  ["find.logs", "arena logs -f JOB -n NAMESPACE"],
];

/** The word of every catalogue: people search in the language that they think in. */
const everywhere = (key: MessageKey): readonly (readonly [string, string])[] => Object.values(catalogues).map((words) => ["", words[key]] as const);

/** What stands above the page of a board, where that is another word than in the menu. */
function headOf(title: MessageKey): MessageKey {
  const head = title.replace("board.", "title.");
  return isMessageKey(head) ? head : title;
}

export function namedPages(t: Translate): readonly Findable[] {
  const pages = PAGES.map(([path, title]): Findable => ({ kind: "pages", to: path, fields: [["", t(title)], ["", path], ...everywhere(title), ...everywhere(headOf(title))] }));
  const lists = LISTS.flatMap(({ path, board, filter, words }) =>
    words.map((value): Findable => {
      const word: MessageKey = path === "/devices" ? (`map.state.${value}` as MessageKey) : (`status.${value.toLowerCase()}` as MessageKey);
      return { kind: "pages", to: `${path}?${filter}=${encodeURIComponent(value)}`, fields: [["", `${t(board)}: ${t(word)}`], ...everywhere(word), ["", value]] };
    }),
  );
  return [...pages, ...lists];
}

export const namedCommands = (): readonly Findable[] => COMMANDS.map(([word, copy]): Findable => ({ kind: "commands", copy, fields: [["", copy], ...everywhere(word)] }));
