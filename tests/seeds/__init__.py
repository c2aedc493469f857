"""What descriptions of other approval gates promise, sentence by sentence, and which test of ours holds it.

Where hitlchat does the opposite on purpose, the row says why; its tests then hold what hitlchat does instead.
"""

from typing import Final

from tests.seeds.components import COMPONENTS
from tests.seeds.fail_open import FAIL_OPEN
from tests.seeds.flags import FLAGS
from tests.seeds.row import Row
from tests.seeds.strategies import STRATEGIES

SEEDS: Final[dict[str, tuple[Row, ...]]] = {
    "001": FAIL_OPEN,
    "002": STRATEGIES,
    "003": FLAGS,
    "004": COMPONENTS,
}
