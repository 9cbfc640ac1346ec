/* Who a process is, and whether it still is: pid, start time and pid namespace. */
#ifndef FAIRLEAD_PROCESS_H
#define FAIRLEAD_PROCESS_H

#include "region.h"

/* Fill identity, start and pid namespace of this process; -1 where /proc does not report them. */
int process_self(struct account *account);

/* `region_is_dead` of this machine. A process in another pid namespace, or one that may not be
 * looked at, is not dead. A zombie without threads is: the driver has its memory back.
 */
int process_is_dead(const struct account *account, const struct region_slot *slot);

#endif
