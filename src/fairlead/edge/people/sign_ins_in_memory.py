"""Sign-ins of one process (`ports.SignIns`), for a console without a store: they end with it."""

from __future__ import annotations

from msgspec import structs

from fairlead.errors import StoreDown
from fairlead.model.records.sign_ins import SignIn

SIGN_INS_MAX = 100_000


class SignInsInMemory:
    """All of them, by hash."""

    def __init__(self) -> None:
        self.rows: dict[str, SignIn] = {}
        self._spent: dict[str, int] = {}

    async def add_sign_in(self, sign_in: SignIn) -> None:
        if len(self.rows) >= SIGN_INS_MAX:
            raise StoreDown(
                f"{SIGN_INS_MAX} users are signed in, and there is no room for more",
                "wait until sign-ins end, or start the console anew",
            )
        self.rows[sign_in.hash] = sign_in

    async def sign_in(self, hash: str) -> SignIn | None:
        return self.rows.get(hash)

    async def touch_sign_in(self, hash: str, seen_at: int) -> None:
        row = self.rows.get(hash)
        if row is not None:
            self.rows[hash] = structs.replace(row, seen_at=max(row.seen_at, seen_at))

    async def end_sign_in(self, hash: str) -> bool:
        return self.rows.pop(hash, None) is not None

    async def end_sign_ins(self, *, user: str = "", identity: str = "") -> int:
        ended = [
            each.hash
            for each in self.rows.values()
            if (user and each.user == user) or (identity and each.identity == identity)
        ]
        for each in ended:
            del self.rows[each]
        return len(ended)

    async def expire_sign_ins(self, now: int, seen_before: int) -> int:
        self._spent = {hash: ends for hash, ends in self._spent.items() if ends > now}
        before = len(self.rows)
        self.rows = {
            hash: row
            for hash, row in self.rows.items()
            if row.ends_at > now and row.seen_at >= seen_before
        }
        return before - len(self.rows)

    async def spend(self, hash: str, ends_at: int) -> bool:
        if hash in self._spent:
            return False
        self._spent[hash] = ends_at
        return True
