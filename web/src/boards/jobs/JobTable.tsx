// A list of training jobs as a table: the board's, and that of whose page it is.
import { type ReactNode, useMemo } from "react";
import type { JobList, JobRow } from "../../api/types";
import { useWords } from "../../i18n/locale";
import { ListTable } from "../../table/ListTable";
import type { Kept } from "../../table/useKept";
import { jobColumns, jobRowKey } from "./columns";

interface Props {
  slug: string;
  title: string;
  /** Beside the title. */
  note?: ReactNode;
  asked: Kept<JobList>;
  asking: URLSearchParams;
  filters: readonly string[];
  selected?: string | null;
  onOpen: (job: JobRow) => void;
  none: ReactNode;
}

export function JobTable({ none, ...list }: Props) {
  const words = useWords();
  const columns = useMemo(() => jobColumns(words), [words]);
  return <ListTable<JobRow> name="jobs" path="/jobs" command="jobs" columns={columns} rowKey={jobRowKey} noneMatch={words.t("jobs.noneMatch")} none={none} {...list} />;
}
