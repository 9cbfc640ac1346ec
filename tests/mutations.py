"""Checks that the tests notice wrong numbers of the console: breaks one line at a time, runs the
test that should fail, and restores the line.

Started by hand, and slow: `python -m tests.mutations` tries all, `python -m tests.mutations memory`
those with the word in their title. `tests/docs/test_mutations` checks that every text is still in
its file exactly once.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PAGES, SUMS = "tests/kube/numbers/test_pages.py", "tests/kube/numbers/test_sums.py"
TENANTS = "tests/console/test_non_interference.py"
PICTURES, STREAMS = "tests/console/test_pictures.py", "tests/console/test_open_streams.py"
SIGN_IN = "tests/apps/test_console_sign_in.py"
TREE, ACTIONS = (
    "tests/apps/test_console_tree_writes.py",
    "tests/apps/test_console_cluster_actions.py",
)
EDIT = "src/fairlead/console/boards/quota/tree_edit.py"
WRITES = "tests/apps/test_console_writes.py"
FRAME = "src/fairlead/console/http/writing/frame.py"
JOBS = "src/fairlead/console/http/routes/jobs.py"
LOGS = "tests/apps/test_console_logs.py"
SUBMIT, SUBMITTING = (
    "tests/apps/test_console_submit.py",
    "src/fairlead/console/http/writing/jobs.py",
)
VITEST = "web: test/gpumap.test.ts"


class Mutation(NamedTuple):
    """`test`: a file for pytest, or `web: FILE` for vitest; `only`: the value of pytest's -k."""

    title: str
    file: str
    old: str
    new: str
    test: str
    only: str = ""


MUTATIONS = (
    Mutation(
        "cards are held since their pod was made, not since it was bound",
        "src/fairlead/model/pod.py",
        "return next(bound, None) or self.started_at or self.created_at",
        "return self.created_at",
        PAGES,
        "node_pages",
    ),
    Mutation(
        "cards of a silent node are free",
        "src/fairlead/console/boards/gpu_map_cells.py",
        "        return UNREACHABLE",
        "        return FREE",
        PAGES,
        "cards",
    ),
    Mutation(
        "cards of a cordoned node are free",
        "src/fairlead/console/boards/gpu_map_cells.py",
        "return is_ready(node) and not node.unschedulable",
        "return is_ready(node)",
        PAGES,
        "pools",
    ),
    Mutation(
        "a job runs on a silent node",
        "src/fairlead/console/boards/jobs_rows.py",
        "running=phases.count(PodPhase.RUNNING) - unknown,",
        "running=phases.count(PodPhase.RUNNING),",
        PAGES,
        "jobs",
    ),
    Mutation(
        "the duration of a job goes on when it has ended",
        "src/fairlead/rules/jobs/status.py",
        "end = job.finished_at if job.finished_at is not None else now",
        "end = now",
        PAGES,
        "jobs",
    ),
    Mutation(
        "memory of our own pages in megabytes",
        "src/fairlead/wire/metrics/gpu_readings.py",
        "return None if value is None else value / MIB",
        "return None if value is None else value / 1_000_000",
        PAGES,
        "overview",
    ),
    Mutation(
        "memory of dcgm-exporter's pages in megabytes",
        "src/fairlead/wire/metrics/gpu_readings.py",
        '"FB_USED": ("memory_used_bytes", MIB),',
        '"FB_USED": ("memory_used_bytes", 1_000_000),',
        PAGES,
        "cards",
    ),
    Mutation(
        "memory of the cluster exporter in megabytes",
        "src/fairlead/rules/metrics/cluster.py",
        "return None if mib is None else round(mib * _MIB)",
        "return None if mib is None else round(mib * 1_000_000)",
        SUMS,
        "gpu_memory",
    ),
    Mutation(
        "a GPU that is silent reports",
        "src/fairlead/rules/holding/occupancy.py",
        "gpus_reporting=len(ratios),",
        "gpus_reporting=len(readings),",
        PAGES,
        "overview",
    ),
    Mutation(
        "MIG instances count alike, whatever their size",
        "src/fairlead/rules/holding/occupancy.py",
        "slices = sum(mig_compute(limits) for _, limits in asking) if mig_worth else 0",
        "slices = sum(mig_slices(limits) for _, limits in asking) if mig_worth else 0",
        SUMS,
        "allocated",
    ),
    Mutation(
        "who takes turns on a card holds a whole one",
        "src/fairlead/rules/holding/occupancy.py",
        "return total / offered if by_turns else 1",
        "return 1",
        PAGES,
        "holders",
    ),
    Mutation(
        "a card is idle as soon as it does nothing",
        "src/fairlead/console/boards/idle_cards.py",
        "return self.seconds >= IDLE_SECONDS",
        "return self.seconds > 0",
        PAGES,
        "overview",
    ),
    Mutation(
        "pods that wait for something else are counted as waiting for each resource",
        "src/fairlead/console/boards/quota/usage_rows.py",
        "waiting_pods=use.own.waiting_by_resource.get(resource, 0),",
        "waiting_pods=use.own.waiting_pods,",
        PAGES,
        "quota",
    ),
    Mutation(
        "a min counts as it is written, however little there is",
        "src/fairlead/model/quota/use.py",
        "return self.own.counted_min.get(resource, self.node.min.get(resource, 0))",
        "return self.node.min.get(resource, 0)",
        PAGES,
        "quota",
    ),
    Mutation(
        "what a leaf may borrow is not bound by the cluster's nodes",
        "src/fairlead/rules/quota/usage.py",
        "rooms = {name: sums.room(leaf, k) for k, name in enumerate(index.resources)}",
        (
            "rooms = {name: (index.root_max[k] or 0) - sums.own[0][k] for k, name in "
            "enumerate(index.resources)}"
        ),
        PAGES,
        "mine",
    ),
    Mutation(
        "each ReplicaSet is an owner of its own",
        "src/fairlead/rules/pods/owner.py",
        'if owner.kind == "ReplicaSet" and len(suffix) > 1',
        'if owner.kind == "" and len(suffix) > 1',
        PAGES,
        "groups",
    ),
    Mutation(
        "charts take no filter",
        "src/fairlead/console/charts/queries.py",
        'return self.expression.replace("$m", matchers)',
        'return self.expression.replace("$m", "")',
        SUMS,
        "chart",
    ),
    Mutation(
        "the legend counts broken cards twice",
        "web/src/gpumap/counts.ts",
        'held: (c) => c.state === "allocated" || c.state === "shared",',
        'held: (c) => c.state === "allocated" || c.state === "shared" || c.state === "unhealthy",',
        VITEST,
    ),
    Mutation(
        "researcher: a route answers from the whole board state",
        "src/fairlead/console/http/routes/console.py",
        "    return console.pictures.of(subject_of(request))",
        "    return console.board_states",
        TENANTS,
        "not any",
    ),
    Mutation(
        "researcher: no route checks its right",
        "src/fairlead/console/http/subjects.py",
        "    if isinstance(answer, Denied):",
        "    if False:",
        TENANTS,
        "forbidden or absent",
    ),
    Mutation(
        "researcher: pods of all namespaces",
        "src/fairlead/model/snapshot.py",
        "pods=tuple(chain.from_iterable(map(self.pods_in, names))),",
        "pods=self.pods,",
        TENANTS,
        "not any",
    ),
    Mutation(
        "researcher: jobs of all namespaces",
        "src/fairlead/model/snapshot.py",
        'jobs=of("jobs"),',
        "jobs=self.jobs,",
        TENANTS,
        "not any",
    ),
    Mutation(
        "researcher: Events of all namespaces",
        "src/fairlead/model/snapshot.py",
        'events=of("events"),',
        "events=self.events,",
        TENANTS,
        "not any",
    ),
    Mutation(
        "researcher: Events with texts of the quota controller",
        "src/fairlead/rules/people/restricted.py",
        "events=restricted_events(own.events),",
        "events=own.events,",
        TENANTS,
        "not any",
    ),
    Mutation(
        "researcher: conditions with texts of the quota controller",
        "src/fairlead/rules/people/restricted.py",
        "        pods=_own_pods(own.pods),",
        "        pods=own.pods,",
        TENANTS,
        "not any",
    ),
    Mutation(
        "researcher: the claimant of a suspended job",
        "src/fairlead/rules/people/restricted.py",
        "jobs=tuple(_own_job(job, reach) for job in own.jobs),",
        "jobs=own.jobs,",
        TENANTS,
        "not any",
    ),
    Mutation(
        "researcher: the claimant in a manifest",
        "src/fairlead/console/http/routes/jobs.py",
        "manifest if reach is None else without_claimant(manifest, reach)",
        "manifest",
        TENANTS,
        "not any",
    ),
    Mutation(
        "researcher: messages of sources",
        "src/fairlead/rules/people/restricted.py",
        "{name: _without_names(source) for name, source in snapshot.sources.items()}",
        "snapshot.sources",
        TENANTS,
        "not any",
    ),
    Mutation(
        "researcher: the whole quota tree",
        "src/fairlead/rules/people/restricted.py",
        "return replace(node, namespaces=names) if sees_leaf(node, reach) else None",
        "return replace(node, namespaces=names)",
        TENANTS,
        "not any",
    ),
    Mutation(
        "researcher: faults of nodes elsewhere",
        "src/fairlead/console/boards/restricted/board.py",
        "return tuple(restricted_violations(self._whole.violations, names))",
        "return self._whole.violations",
        TENANTS,
        "not any",
    ),
    Mutation(
        "researcher: units of all namespaces wait",
        "src/fairlead/rules/people/restricted.py",
        '            if each.unit.partition("/")[0] in own\n',
        "",
        TENANTS,
        "not any",
    ),
    Mutation(
        "researcher: clauses name borrowers",
        "src/fairlead/rules/people/restricted.py",
        "    clauses = restricted_clauses(waiting.clauses, reach)",
        "    clauses = waiting.clauses",
        TENANTS,
        "not any",
    ),
    Mutation(
        "researcher: borrowers",
        "src/fairlead/rules/people/restricted.py",
        "        borrowers=(),\n",
        "",
        TENANTS,
        "not any",
    ),
    Mutation(
        "researcher: what could start names borrowers",
        "src/fairlead/console/boards/restricted/board.py",
        "        return restricted_waiting(waiting, self._reach)",
        "        return waiting",
        TENANTS,
        "not any",
    ),
    Mutation(
        "researcher: figures of quota nodes above are of all leaves",
        "src/fairlead/console/boards/restricted/board.py",
        "rows = [row if row.is_leaf else _above(row, leaves) for row in rows]",
        "pass",
        TENANTS,
        "not any",
    ),
    Mutation(
        "researcher: holders of all cards",
        "src/fairlead/console/boards/restricted/nameless.py",
        "        if pod.namespace in namespaces:\n            return pod\n        if pod.key",
        "        if True:\n            return pod\n        if pod.key",
        TENANTS,
        "not any",
    ),
    Mutation(
        "researcher: pods without a name on a node's page",
        "src/fairlead/console/boards/restricted/board.py",
        "pods=[pod for pod in row.pods if pod.namespace != ANOTHER_TEAM]",
        "pods=row.pods",
        TENANTS,
        "not any",
    ),
    Mutation(
        "researcher: how many pods share a card",
        "src/fairlead/console/boards/gpu_map_cells.py",
        "    if others:",
        "    if False:",
        TENANTS,
        "not any",
    ),
    Mutation(
        "researcher: search finds all",
        "src/fairlead/console/boards/restricted/board.py",
        "self._whole.search_index, self.job_by_pod, text, most, self._reach.namespaces",
        "self._whole.search_index, self.job_by_pod, text, most",
        TENANTS,
        "not any",
    ),
    Mutation(
        "researcher: serving jobs of all",
        "src/fairlead/console/boards/restricted/board.py",
        "return tuple(row for row in rows if row.namespace in self._reach.namespaces)",
        "return tuple(rows)",
        TENANTS,
        "not any",
    ),
    Mutation(
        "researcher: idle cards of all",
        "src/fairlead/console/boards/restricted/board.py",
        "return self._whole.idle.within(self._reach.namespaces)",
        "return self._whole.idle",
        TENANTS,
        "not any",
    ),
    Mutation(
        "researcher: lines of charts of all",
        "src/fairlead/console/http/routes/charts.py",
        "return reach.seen(await _lines_of_all(console, *narrowed))",
        "return await _lines_of_all(console, query, asked)",
        TENANTS,
        "not any",
    ),
    Mutation(
        "researcher: a picture is as new as the whole board state",
        "src/fairlead/console/http/pictures.py",
        "if before != self.versions.count or age >= RENEWED_AFTER_SECONDS:",
        "if True:",
        PICTURES,
    ),
    Mutation(
        "researcher: hints of all",
        "src/fairlead/console/http/routes/session.py",
        "hints = console.hints if reach is None else console.pictures.picture(reach).hints",
        "hints = console.hints",
        STREAMS,
        "hints",
    ),
    Mutation(
        "researcher: a stream outlives the right",
        "src/fairlead/console/http/subjects.py",
        "await asyncio.wait({sending, denied}, return_when=asyncio.FIRST_COMPLETED)",
        "await asyncio.wait({sending})",
        STREAMS,
        "ends",
    ),
    Mutation(
        "researcher: the Health page has addresses",
        "src/fairlead/console/http/routes/session.py",
        "rows = health_summary(rows)",
        "pass",
        TENANTS,
        "not any",
    ),
    Mutation(
        "researcher: reasons of jobs as the administrator reads them",
        "src/fairlead/console/boards/restricted/board.py",
        "        if row.waiting is not None or not self._whole.has_instances(each):",
        "        if False:",
        TENANTS,
        "not any",
    ),
    Mutation(
        "researcher: holders in the list of GPUs",
        "src/fairlead/console/boards/restricted/board.py",
        "        return listed_gpus(self.occupancy, self.now, lambda pod: False)",
        "        return listed_gpus(self.occupancy, self.now)",
        TENANTS,
        "not any",
    ),
    Mutation(
        "researcher: teams on the map",
        "src/fairlead/console/boards/restricted/board.py",
        "        return pod.namespace if self._is_own(pod) else ANOTHER_TEAM",
        "        return pod.namespace",
        TENANTS,
        "not any",
    ),
    Mutation(
        "researcher: the number of changes of all",
        "src/fairlead/console/http/routes/session.py",
        "return str(console.pictures.picture(reach).versions.count)",
        "return str(console.world.cluster.version)",
        TENANTS,
        "not any",
    ),
    Mutation(
        "researcher: versions count the changes of all",
        "src/fairlead/console/http/pictures.py",
        "return RestrictedBoard(whole, snapshot, self.reach, self._now, self.versions.as_text())",
        "return RestrictedBoard(whole, snapshot, self.reach, self._now, whole.versions)",
        TENANTS,
        "not any",
    ),
    Mutation(
        "writes: the audit comes after the write",
        FRAME,
        "        begun = structs.replace(begun, id=await tools.audit.append_audit(begun))",
        "        begun = structs.replace(begun, id=0)",
        WRITES,
        "before_it_is_sent or without_a_row",
    ),
    Mutation(
        "writes: CSRF is off",
        FRAME,
        "        body = await own_body(request, csrf, is_empty=endpoint.body in (None, NoBody))",
        "        body = await own_body(request, None, is_empty=endpoint.body in (None, NoBody))",
        WRITES,
        "token_of_its_page",
    ),
    Mutation(
        "writes: the right is not checked",
        "src/fairlead/console/http/subjects.py",
        '    require(request, right, request.path_params.get("namespace", any_own))',
        "    pass",
        WRITES,
        "researcher_writes_nothing",
    ),
    Mutation(
        "submit: the objects are not created as the user",
        SUBMITTING,
        "        return await self.writes.write(action, account) or manifest",
        "        return await self.writes.write(action) or manifest",
        SUBMIT,
        "submits_as_the_user",
    ),
    Mutation(
        "submit: the dry run is not asked as the user",
        SUBMITTING,
        "                await self.writes.write(action, subject.account)",
        "                await self.writes.write(action)",
        SUBMIT,
        "preview_tries_every_object",
    ),
    Mutation(
        "submit: the namespace of the body is not checked",
        SUBMITTING,
        "        require(request, _RIGHT, order.namespace)",
        "        pass",
        SUBMIT,
        "foreign_namespace",
    ),
    Mutation(
        "submit: a failure half way leaves what was made",
        SUBMITTING,
        "        for each in reversed(made):",
        "        for each in ():",
        SUBMIT,
        "half_way",
    ),
    Mutation(
        "submit: the verdict names other teams",
        "src/fairlead/console/boards/submitting/verdict.py",
        "        shown = board.shown_waiting(found.waiting)",
        "        shown = found.waiting",
        "tests/console/test_submit_verdict.py",
        "no_name_of_another_team",
    ),
    Mutation(
        "writes: a later change is overwritten",
        FRAME,
        "            if version is not None and planned.version != version:",
        "            if False:",
        WRITES,
        "version_that_was_read",
    ),
    Mutation(
        "writes: a preview writes",
        FRAME,
        "            if is_preview:\n                return _plain(_preview(planned), 200)",
        "            pass",
        WRITES,
        "preview_changes_nothing",
    ),
    Mutation(
        "writes: a key counts for nothing",
        FRAME,
        "        if key and not await tools.spent.spend(key, tools.now() + KEY_MS):",
        "        if False:",
        WRITES,
        "with_one_key",
    ),
    Mutation(
        "writes: the answer with a token is kept",
        FRAME,
        "        if key and not written.is_secret:",
        "        if key:",
        WRITES,
        "with_one_key",
    ),
    Mutation(
        "writes: one revokes tokens of others",
        "src/fairlead/console/http/writing/credentials.py",
        "for each in await people.credentials(user.name) if each.name == name",
        "for each in await people.credentials() if each.name == name",
        WRITES,
        "no_others",
    ),
    Mutation(
        "sign-in: writes need no token of theirs",
        "src/fairlead/console/http/writes.py",
        "    if not hmac.compare_digest(given.encode(), csrf.encode()):",
        "    if False:",
        SIGN_IN,
        "token_of_its_own or signs_a_browser_out",
    ),
    Mutation(
        "sign-in: the signature of a cookie is not checked",
        "src/fairlead/rules/people/sign_in.py",
        "        if hmac.compare_digest(signature, _signature(id, key)):",
        "        if True:",
        "tests/rules/people/test_sign_in.py",
    ),
    Mutation(
        "sign-in: the origin of a sign-in is not checked",
        "src/fairlead/console/http/sign_in/desk.py",
        "        check_origin(request)\n        check_json(request)",
        "        check_json(request)",
        SIGN_IN,
        "signs_a_browser_in",
    ),
    Mutation(
        "sign-in: the browser keeps its id",
        "src/fairlead/console/http/sign_in/desk.py",
        "            await self._signed_in.end(hash_of(before.id))",
        "            pass",
        SIGN_IN,
        "new_id",
    ),
    Mutation(
        "sign-in: a disabled user is not looked for",
        "src/fairlead/rules/people/identities.py",
        "    if user.is_disabled:",
        "    if False:",
        SIGN_IN,
        "disabled or never_the_first",
    ),
    Mutation(
        "sign-in: enabling brings sign-ins back",
        "src/fairlead/console/http/sign_in/signed_in_subjects.py",
        "                self._ended.put_nowait(name)",
        "                pass",
        SIGN_IN,
        "disabled",
    ),
    Mutation(
        "sign-in: failures do not count",
        "src/fairlead/rules/people/sign_in.py",
        "        self._failed[client] = [*self._past(client, now), now]",
        "        self._failed[client] = []",
        SIGN_IN,
        "eleventh",
    ),
    Mutation(
        "sign-in: X-Forwarded-For of any client counts",
        "src/fairlead/console/http/proxies.py",
        "        if not self._is_trusted(address):\n            return Peer(address, is_tls)",
        "        if False:\n            return Peer(address, is_tls)",
        SIGN_IN,
        "escapes_no_limit or of_others",
    ),
    Mutation(
        "sign-in: the nonce of an ID token is not checked",
        "src/fairlead/edge/oidc/id_token.py",
        "    if not isinstance(nonce, str) or not hmac.compare_digest(",
        "    if False and not hmac.compare_digest(",
        "tests/edge/oidc/test_id_token.py",
    ),
    Mutation(
        "sign-in: an ID token may be signed with a shared secret",
        "src/fairlead/edge/oidc/id_token.py",
        "    if algorithm not in ALGORITHMS:",
        "    if False:",
        "tests/edge/oidc/test_id_token.py",
    ),
    Mutation(
        "sign-in: an answer of the provider is good for any browser",
        "src/fairlead/console/http/sign_in/desk.py",
        "            state_text(signed.id).encode(), state.encode()",
        "            state.encode(), state.encode()",
        SIGN_IN,
        "in_time",
    ),
    Mutation(
        "sign-in: an answer of the provider works twice",
        "src/fairlead/console/http/sign_in/desk.py",
        "        if not await self._tools.store.spend(hash_of(signed.id), ends_at):",
        "        if False:",
        SIGN_IN,
        "in_time",
    ),
    Mutation(
        "sign-in: any page is one of the console",
        "src/fairlead/rules/people/sign_in.py",
        '    return next if is_local else "/"',
        "    return next",
        SIGN_IN,
        "no_other_host",
    ),
    Mutation(
        "sign-in: a sign-in outlives its token",
        "src/fairlead/console/http/sign_in/desk.py",
        "            ends_at = min(ends_at, now + max(0, round(left * 1000)))",
        "            pass",
        SIGN_IN,
        "when_its_token_does",
    ),
    Mutation(
        "sign-in: the console's clock decides when a token ends",
        "src/fairlead/console/http/sign_in/desk.py",
        "(self._tools.cluster_now or self._tools.now)()",
        "self._tools.now()",
        SIGN_IN,
        "cluster_s_time",
    ),
    Mutation(
        "sign-in: a revoked token's sign-in goes on",
        "src/fairlead/console/http/sign_in/signed_in_subjects.py",
        "        return found is False",
        "        return False",
        SIGN_IN,
        "revoked_token_ends",
    ),
    Mutation(
        "sign-in: another object of the Secret's name is it",
        "src/fairlead/edge/people/sign_in_api.py",
        "        return uid == bound.uid",
        "        return True",
        "tests/kube/test_sign_in.py",
        "revoked_credential",
    ),
    Mutation(
        "people: hints of users go to researchers",
        "src/fairlead/console/http/pictures.py",
        "TopicVersions(int(world.clock.now()), TOPICS)",
        "TopicVersions(int(world.clock.now()))",
        "tests/apps/test_console_hints.py",
        "administrators_alone",
    ),
    Mutation(
        "people: no hint comes when a user changes",
        "src/fairlead/apps/console_server.py",
        "self.hints.versions.note_people(*self._desk.people)",
        "pass",
        "tests/apps/test_console_hints.py",
        "administrators_alone",
    ),
    Mutation(
        "people: two groups have one leaf",
        "src/fairlead/rules/people/leaves.py",
        "        elif holder is not group:",
        "        elif False:",
        "tests/kube/test_people.py",
        "two_groups",
    ),
    Mutation(
        "people: the laptop judges no deletion",
        "src/fairlead_sim/store/cluster.py",
        "        self._admitted(Write(DELETE, ref, user, old, old))\n",
        "",
        "tests/run/test_people_admission.py",
        "deletions",
    ),
    Mutation(
        "people: the table of rights has every namespace as an own one",
        "src/fairlead/console/http/sign_in/own_rights.py",
        "if _may(subject, verb, resource, _FOREIGN)",
        "if _may(subject, verb, resource, own)",
        "tests/console/test_own_rights.py",
        "a_researcher_has",
    ),
    Mutation(
        "people: own kubeconfigs are issued without a bound",
        "src/fairlead/console/http/writing/credentials.py",
        "len(valid) >= MOST_VALID",
        "False",
        WRITES,
        "bounded_number",
    ),
    Mutation(
        "people: a store that is away is well",
        "src/fairlead/console/boards/health.py",
        '"fail", [_failure(look)], is_settable=False',
        '"ok", [_failure(look)], is_settable=False',
        "tests/console/test_health.py",
        "store_by_its",
    ),
    Mutation(
        "sign-in: the audit comes after the sign-in",
        "src/fairlead/console/http/sign_in/desk.py",
        "        await self._note(request, BEGIN, row.way, who)\n"
        "        await self._tools.store.add_sign_in(row)",
        "        await self._tools.store.add_sign_in(row)\n"
        "        await self._note(request, BEGIN, row.way, who)",
        SIGN_IN,
        "without_a_row",
    ),
    Mutation(
        "quota: a later unit overtakes one that is tried",
        "src/fairlead/rules/quota/machine.py",
        "            elif not is_held:",
        "            else:",
        "tests/rules/quota/test_machine.py",
    ),
    Mutation(
        "quota: the claims of one plan change places while they are written",
        "src/fairlead/rules/quota/reports.py",
        "return replace(pod, claim_since=condition.at) if is_first else pod",
        "return pod",
        "tests/rules/quota/test_machine.py",
    ),
    Mutation(
        "quota: a preview does not write the claims",
        "src/fairlead/rules/quota/what_if.py",
        "while plan.evict and self._claim(plan):",
        "while False:",
        "tests/rules/quota/test_what_if.py",
    ),
    Mutation(
        "quota: a drain waits for a claim",
        "src/fairlead/rules/quota/machine.py",
        "            if not is_drain:",
        "            if True:",
        "tests/rules/quota/test_machine.py",
        "drain",
    ),
    Mutation(
        "tree: the preview is one of the tree that is stored",
        EDIT,
        "what_if = board.effects_of(new, violations)",
        "what_if = board.effects_of(old or new, violations)",
        "tests/console/test_tree_preview.py",
    ),
    Mutation(
        "tree: groups are not asked when a leaf is deleted",
        EDIT,
        "for each in groups.values() if each.leaf],",
        "for each in groups.values() if not each.leaf],",
        TREE,
    ),
    Mutation(
        "tree: a later change of the tree is written over",
        "src/fairlead/console/http/writing/quota_tree.py",
        "if _version(now) != _version(wanted.stored) or number",
        "if number",
        TREE,
    ),
    Mutation(
        "tree: fields that the editor does not show are lost",
        "src/fairlead/wire/quota/tree_edit.py",
        "raw = dict(before.get(node.formerly, {})) if node.formerly else {}",
        "raw = dict[str, Any]()",
        TREE,
    ),
    Mutation(
        "tree: a researcher sees when others change it",
        "src/fairlead/console/boards/restricted/board.py",
        '            tree_version="",\n',
        "",
        TREE,
    ),
    Mutation(
        "jobs are turned with the rights of the server",
        "src/fairlead/console/http/writing/cluster_actions.py",
        "await writes.write(action, account)",
        "await writes.write(action)",
        ACTIONS,
    ),
    Mutation(
        "a job that quota has suspended is resumed by its owner",
        "src/fairlead/console/http/writing/cluster_actions.py",
        "if not order.suspended and work.is_suspended and work.suspended_for:",
        "if False:",
        ACTIONS,
    ),
    Mutation(
        "store: a migration that ended half-way cannot go on",
        "src/fairlead/edge/store/migrations/steps.py",
        "    if not inspect(op.get_bind()).has_table(name):",
        "    if True:",
        "tests/stores/test_migrations.py",
        "mariadb and killed",
    ),
    Mutation(
        "store: two consoles migrate at once",
        "src/fairlead/edge/store/migrate.py",
        "with _lock(address, connection):",
        "with engines.failures(address):",
        "tests/stores/test_migrations.py",
        "at_once",
    ),
    Mutation(
        "store: a key of OpenID Connect works twice",
        "src/fairlead/edge/store/sql_store.py",
        "        except IntegrityError:\n            return False",
        "        except IntegrityError:\n            return True",
        "tests/stores/test_contract.py",
        "sqlite and spent",
    ),
    Mutation(
        "store: while the server hangs, each call waits for it",
        "src/fairlead/edge/store/sql_store.py",
        "if self._down is not None and time.monotonic() < self._down_until:",
        "if False:",
        "tests/stores/test_faults.py",
        "postgresql and hangs",
    ),
    Mutation(
        "store: a row of the audit is shown as begun after its end",
        "src/fairlead/edge/store/sql_store.py",
        "audit.c.result != str(AuditResult.BEGUN), ~has_second",
        "audit.c.result != str(AuditResult.BEGUN), has_second",
        "tests/stores/test_contract.py",
        "sqlite and begun",
    ),
    Mutation(
        "as the user: logs with the console's rights",
        JOBS,
        "console.logs.answer(files, each, dict(request.query_params), account)",
        'console.logs.answer(files, each, dict(request.query_params), "")',
        LOGS,
        "asked_as_the_user",
    ),
    Mutation(
        "as the user: manifests with the console's rights",
        JOBS,
        ".manifest(job, subject.account)",
        '.manifest(job, "")',
        LOGS,
        "asked_as_the_user",
    ),
    Mutation(
        "as the user: events with the console's rights",
        "src/fairlead/edge/queries/job_files.py",
        "Selection(namespace, fields=fields, account=account)",
        "Selection(namespace, fields=fields)",
        LOGS,
        "asked_as_the_user",
    ),
    Mutation(
        "as the user: the events of one user are shown to another",
        "src/fairlead/console/http/job_event_answers.py",
        "            (account, each.job.namespace, uids),",
        '            ("", each.job.namespace, uids),',
        "tests/apps/test_console_events.py",
        "no_answer_to_another",
    ),
    Mutation(
        "as the user: an open log outlives the right",
        "src/fairlead/console/http/subjects.py",
        "if may_go_on is not None and not await may_go_on():",
        "if False:",
        STREAMS,
        "withdraws",
    ),
    Mutation(
        "as the user: an API server that does not answer ends logs",
        "src/fairlead/console/http/log_streams.py",
        "        return True\n\n\nasync def _first",
        "        return False\n\n\nasync def _first",
        STREAMS,
        "withdraws",
    ),
    Mutation(
        "tree: namespaces are created with the console's rights",
        "src/fairlead/console/http/writing/quota_tree.py",
        "_create_namespaces(writes, edit.new_namespaces, account)",
        '_create_namespaces(writes, edit.new_namespaces, "")',
        TREE,
        "created_as_the",
    ),
    Mutation(
        "tree: namespaces are created that the administrator did not want",
        EDIT,
        "created = difference.unknown if order.create_namespaces else ()",
        "created = difference.unknown",
        TREE,
        "created_as_the",
    ),
    Mutation(
        "tree: ACK's own field becomes an attribute",
        "src/fairlead/wire/quota/tree_edit.py",
        "for key, value in node.attributes.items() if key.lower() != ACK_FIELD",
        "for key, value in node.attributes.items()",
        TREE,
        "malformed or attributes",
    ),
    Mutation(
        "writes: the row of a refused write has no object",
        FRAME,
        "target = named_target(endpoint.action, request.path_params, own)",
        "target = AuditTarget()",
        WRITES,
        "names_its_object",
    ),
    Mutation(
        "quota commands: a plan of the pods that a researcher may read",
        "src/fairlead/cli/quota/cluster_state.py",
        "return pods is not None and pods.is_forbidden",
        "return False",
        "tests/cli/quota/test_quota_why.py",
        "researcher",
    ),
)


def is_seen(mutation: Mutation) -> bool:
    """Whether the test fails with the mutation; afterwards the file is as before,
    whatever happens.
    """
    path = ROOT / mutation.file
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
    try:
        ran = _run(mutation)
        return ran.returncode == 1 and " failed" in ran.stdout
    finally:
        path.write_text(text, encoding="utf-8")


def _run(mutation: Mutation) -> subprocess.CompletedProcess[str]:
    if mutation.test.startswith("web: "):
        argv, folder = (
            ["npx", "--no-install", "vitest", "run", mutation.test.removeprefix("web: ")],
            ROOT / "web",
        )
    else:
        argv, folder = (
            [sys.executable, "-m", "pytest", "-q", "-x", mutation.test, "-k", mutation.only],
            ROOT,
        )
    return subprocess.run(
        argv, cwd=folder, capture_output=True, text=True, timeout=600, check=False
    )


def main(words: list[str]) -> int:
    """Exit status 1 if a test did not notice its mutation."""
    chosen = [each for each in MUTATIONS if all(word in each.title for word in words)]
    unseen = 0
    for each in chosen:
        seen = is_seen(each)
        unseen += not seen
        print(f"{'seen' if seen else 'NOT SEEN'}: {each.title}", flush=True)
    return 1 if unseen or not chosen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
