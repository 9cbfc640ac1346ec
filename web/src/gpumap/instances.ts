// MIG instances of a divided card: the name of an instance, and the number of held ones.
import type { GpuRow, MigInstanceRow } from "../api/types";
import type { Words } from "../i18n/locale";

/** Profile and id: two instances of a card may have one profile. */
export const instanceName = (instance: Pick<MigInstanceRow, "profile" | "id">): string => `${instance.profile} #${instance.id}`;

/** Nothing of a card that is not divided. */
export function instancesHeld(gpu: Pick<GpuRow, "migInstances">, t: Words["t"]): string | null {
  const total = gpu.migInstances.length;
  return total > 0 ? t("node.instancesHeld", { held: gpu.migInstances.filter((each) => each.pods.length > 0).length, total }) : null;
}
