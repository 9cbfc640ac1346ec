// A name from outside: it cannot reorder the text around it, and hides nothing.
import { shown } from "../format/shown";

export function Name({ text }: { text: string }) {
  return <bdi>{shown(text)}</bdi>;
}
