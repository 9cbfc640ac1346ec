// What happened, newest first: events of a job with its pods, or of a node.
import type { EventRow } from "../api/types";
import { count } from "../format/format";
import { shown } from "../format/shown";
import { useWords } from "../i18n/locale";
import { Ago } from "./Ago";

const SHOWN = 30;

export function EventList({ events }: { events: readonly EventRow[] }) {
  const { t } = useWords();
  return (
    <ul className="list nested">
      {events.slice(0, SHOWN).map((event, i) => (
        <li key={`${event.object} ${event.reason} ${i}`}>
          <span className="when">
            <Ago at={event.at} />
          </span>
          <div className="grow">
            <div className="clip">
              <b className={event.type === "Warning" ? "flag" : ""}>{shown(event.reason)}</b> <span className="mono dim">{shown(event.object)}</span>
              {event.count > 1 && <span className="dim num"> ×{count(event.count)}</span>}
            </div>
            <div className="message">{shown(event.message)}</div>
          </div>
        </li>
      ))}
      {events.length > SHOWN && <li className="dim num">{t("events.more", { n: events.length - SHOWN })}</li>}
    </ul>
  );
}
