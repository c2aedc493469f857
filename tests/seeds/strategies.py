"""A pluggable approval strategy, consulted by a tool-calling manager (002)."""

from typing import Final

from tests.seeds.row import Row, row

RULES = "gate/test_policies.py::test_what_the_rules_say"
BROKEN = "gate/test_policies_broken.py::test_a_policy_that_gives_no_answer_asks"
REFUSAL = "gate/test_policies.py::test_a_refusal_counts_in_every_mode"
NEVER = "gate/test_policies.py::test_a_tool_that_never_asks_is_not_asked_about_because_of_a_rule"
TOLD = "gate/test_results.py::test_every_outcome_reads_differently"
FREE = "agent/test_turns.py::test_an_ungated_call_runs_and_the_model_reads_its_result"

STRATEGIES: Final[tuple[Row, ...]] = (
    row("A given call is executed, rejected or handled otherwise, at runtime", RULES),
    row(
        "The strategy is consulted before any tool is executed",
        RULES,
        "gate/test_one_funnel.py::test_only_the_gates_performing_file_executes_a_tool_of_a_source",
        "gate/test_submit.py::test_every_call_enters_the_record_with_one_event",
    ),
    row(
        "It receives the tool, the arguments and who calls", RULES, "gate/test_policies.py::test_callers_are_told_apart"
    ),
    row(
        "The context may be null",
        "gate/test_policies.py::test_callers_are_told_apart",
        instead="There is no call without a caller: who calls is always known to the rules.",
    ),
    row("It returns approve or reject", RULES),
    row(
        "It may throw to signal an error in evaluating",
        BROKEN,
        "gate/test_policies_broken.py::test_what_is_broken_inside_of_another_rule_asks_too",
        "gate/test_faults.py::test_a_policy_that_fails_asks",
    ),
    row("Normal rejections are decisions, not exceptions", REFUSAL),
    row(
        "A policy engine that is unavailable is an approval-layer failure",
        BROKEN,
        "gate/test_policies_broken.py::test_a_policy_that_hangs_asks",
    ),
    row("alwaysApprove approves every call", RULES),
    row("alwaysReject rejects with a reason", RULES, REFUSAL),
    row(
        "`reason` is for logging and for model and user",
        REFUSAL,
        "gate/test_results.py::test_the_reason_is_told",
        "api/test_calls.py::test_a_rejected_call_says_why",
    ),
    row(
        "`metadata` tells which policy decided",
        RULES,
        "gate/test_policies.py::test_a_condition_and_a_rule_are_heard_both",
    ),
    row("requiresApproval null: the global strategy decides", RULES),
    row(
        "requiresApproval true: the strategy is always applied",
        "gate/test_policies.py::test_a_tool_that_asks_every_time_cannot_be_loosened",
        REFUSAL,
        instead="A tool that asks every time asks a person, whatever a milder rule says.",
    ),
    row(
        "requiresApproval false: the strategy is never applied",
        NEVER,
        REFUSAL,
        "gate/test_policies_broken.py::test_a_policy_that_gives_no_answer_asks",
        instead="Such a tool is not asked about, but a refusal and a rule that broke count for it too.",
    ),
    row("A harmless tool bypasses approval although a strategy is configured", NEVER),
    row("A sensitive tool is always subject to it", REFUSAL),
    row(
        "By default every call is approved, as before",
        RULES,
        "project_tools/test_declaring.py::test_the_bare_decorator_is_the_strictest",
        "tools_studio/test_pages.py::test_where_the_author_chooses_no_mode_the_risk_does",
        instead="Without any rule a call is asked about: nothing runs because nobody thought of it.",
    ),
    row(
        "Rejections happen only with a strategy of one's own",
        RULES,
        "gate/test_decide.py::test_an_approved_call_runs_once_and_a_declined_one_never",
        instead="A person can always decline, with no rule at all.",
    ),
    row(
        "The manager resolves the tool before it asks",
        "gate/test_submit.py::test_an_unknown_tool_is_rejected_by_its_exact_name",
        "gate/test_submit.py::test_a_tool_out_of_the_callers_reach_is_unknown_to_it",
    ),
    row(
        "Approved: the tool is executed",
        "gate/test_decide.py::test_an_approved_call_runs_once_and_a_declined_one_never",
    ),
    row(
        "Rejected: not executed, a structured rejection goes to the model",
        TOLD,
        "gate/test_results.py::test_what_was_not_executed_says_so",
        "agent/test_asking.py::test_a_call_that_cannot_be_is_explained_to_the_model_and_nobody_is_asked",
    ),
    row("Approval not required: executed as today", FREE),
    row("Listed tools are rejected before execution, with the reason", REFUSAL),
    row("Composite strategies combine several (for later there)", RULES),
    row(
        "Execution pauses until approval is received (for later there)",
        "gate/test_submit.py::test_a_gated_call_waits_and_is_not_run",
    ),
    row(
        "All tool decisions are logged in one place (for later there)",
        "gate/test_audit.py::test_each_step_of_a_call_leaves_one_event_in_order",
        "api/test_audit.py::test_the_record_has_what_was_asked_and_who_answered",
    ),
)
