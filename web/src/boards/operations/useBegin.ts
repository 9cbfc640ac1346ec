// Starts an operation by a write of the API, and goes to its page.
import { useWrite, type WriteOrder } from "../../api/queries";
import type { Begun } from "../../api/types";
import { navigate } from "../../router/router";

/**
 * `begin` writes the order. The page follows although the form is gone by then, because what it stands on ended with the write; not if the reader has gone to
 * another page meanwhile. `write` has the error.
 */
export function useBegin() {
  const write = useWrite<Begun>();
  const begin = (order: WriteOrder) => {
    const from = window.location.pathname;
    write.mutateAsync(order).then(
      ({ operation }) => {
        if (window.location.pathname === from) navigate(`/operations/${encodeURIComponent(operation)}`);
      },
      () => undefined,
    );
  };
  return { write, begin };
}
