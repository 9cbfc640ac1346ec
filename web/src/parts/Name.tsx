// A name as somebody else wrote it: it reorders nothing beside it, and hides nothing.
import { shown } from "../format/shown";

export function Name({ text }: { text: string }) {
  return <bdi>{shown(text)}</bdi>;
}
