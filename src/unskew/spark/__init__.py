"""unskew on Spark: the scheme's decisions as an ordinary salt column.

    from unskew.spark import repartition

    balanced = repartition(df, "word", workers=64)

What routes rows takes a DataFrame and returns one, so it works with ``df.transform``; reports, plans and measurements
are objects of their own. Everything works on Spark Connect unless its docstring says otherwise, and nothing changes a
setting of the session. Only this package and ``unskew.apps`` import pyspark.
"""

from unskew.spark.aggregate import aggregate
from unskew.spark.apply_split import apply_split
from unskew.spark.apply_whole import apply_whole
from unskew.spark.background import run_watched as run_watched  # this and the others "as": for unskew's own commands
from unskew.spark.balance import Balance, measure_balance
from unskew.spark.conversation import Conversation, Heard
from unskew.spark.cost import cost_report
from unskew.spark.counting import Decay
from unskew.spark.feedback import Feedback
from unskew.spark.keys import key_id
from unskew.spark.learned_costs import LearnedCosts
from unskew.spark.local import QUICK_START as QUICK_START
from unskew.spark.local import local_spark as local_spark
from unskew.spark.local import require_java as require_java
from unskew.spark.map_balanced import map_balanced
from unskew.spark.planning import plan_for
from unskew.spark.rebalance import Rebalanced, rebalance
from unskew.spark.route import SALT
from unskew.spark.routing import add_salt, repartition
from unskew.spark.serving import Served as Served
from unskew.spark.serving import place_at as place_at
from unskew.spark.serving import place_whole_keys as place_whole_keys
from unskew.spark.serving import require_task_threads as require_task_threads
from unskew.spark.serving import serve as serve
from unskew.spark.serving import serve_timed as serve_timed
from unskew.spark.serving import source_rows as source_rows
from unskew.spark.sessions import SPARK_ERRORS as SPARK_ERRORS
from unskew.spark.sessions import session_on as session_on
from unskew.spark.skew import skew_report
from unskew.spark.streaming.adaptive import Adaptive
from unskew.spark.streaming.merging import PROVIDER as PROVIDER
from unskew.spark.streaming.merging import ROCKS as ROCKS
from unskew.spark.streaming.sleeping import sleeping_queries as sleeping_queries
from unskew.spark.streaming.watch import Watch, watch
from unskew.spark.word_count import Timesheet as Timesheet
from unskew.spark.word_count import count_words as count_words

__all__ = [
    "SALT",
    "Adaptive",
    "Balance",
    "Conversation",
    "Decay",
    "Feedback",
    "Heard",
    "LearnedCosts",
    "Rebalanced",
    "Watch",
    "add_salt",
    "aggregate",
    "apply_split",
    "apply_whole",
    "cost_report",
    "key_id",
    "map_balanced",
    "measure_balance",
    "plan_for",
    "rebalance",
    "repartition",
    "skew_report",
    "watch",
]
