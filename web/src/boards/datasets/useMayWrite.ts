// Administrators who are signed in write data sets; for others the page has no buttons.
import { useMe } from "../../api/queries";

export function useMayWrite(): boolean {
  const me = useMe().data;
  return me?.user.role === "admin" && me.way !== "none";
}
