"""What limits the tokens that a user may ask for: the texts of the policy `fairlead-renewal`, which
the laptop's API server applies, too.
"""

from __future__ import annotations

from typing import Final

RENEWAL_POLICY: Final = "fairlead-renewal"
"""Name of the ValidatingAdmissionPolicy without which no renewed credential is issued."""
RENEWED_SECONDS_MAX: Final = 7 * 86400
"""The longest lifetime of a token that its user renews."""
OWN_ONLY: Final = "a user renews tokens of the own ServiceAccount only"
BOUND_ONLY: Final = "a renewed token is bound to the Secret of its credential, by uid"
NOT_LONGER: Final = "a renewed token lives 7 days at most"
