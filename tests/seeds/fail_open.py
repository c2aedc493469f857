"""A suspending agent with a REST API for its approvals, open when it fails (001)."""

from typing import Final

from tests.seeds.row import Row, row

GATED = "gate/test_submit.py::test_a_gated_call_waits_and_is_not_run"
RULES = "gate/test_policies.py::test_what_the_rules_say"
ASKING = "agent/test_asking.py"
REST = "api/test_approvals.py"
EXPIRES = f"{ASKING}::test_a_call_that_nobody_answers_expires_and_the_model_goes_on"
DECLINED = f"{ASKING}::test_a_declined_call_is_never_entered_and_the_model_is_told_why"
ASKED = f"{REST}::test_an_approval_says_what_is_asked"
AFTER_YES = f"{REST}::test_after_a_yes_the_call_runs_and_before_it_does_not"
AFTER_NO = f"{REST}::test_after_a_no_the_call_never_runs_and_the_reason_is_kept"
SWITCH = "gate/test_submit.py::test_the_master_switch_lets_everything_run_and_it_is_on_record"

FAIL_OPEN: Final[tuple[Row, ...]] = (
    row("The agent pauses before executing dangerous actions", GATED),
    row(
        "Each of several calls is reviewed, approved and run in turn",
        f"{ASKING}::test_calls_of_one_turn_are_answered_in_any_order_and_read_in_the_models",
        f"{ASKING}::test_an_approved_call_starts_while_others_still_wait",
    ),
    row("A policy decides by tool name and arguments", RULES),
    row("True pauses the call for approval", RULES, GATED),
    row(
        "False lets it execute immediately",
        RULES,
        "agent/test_turns.py::test_an_ungated_call_runs_and_the_model_reads_its_result",
    ),
    row(
        "A pending approval has a unique id",
        "gate/test_ids.py::test_ids_of_questions_are_random_and_say_nothing_of_each_other",
    ),
    row(
        "The agent's coroutine suspends until a person answers",
        f"{ASKING}::test_a_run_that_waits_is_nothing_but_rows",
        "agent/test_crashes.py::test_a_conversation_that_waits_survives_a_kill_and_its_call_runs_once",
        instead="What waits are rows: a coroutine would be lost with its process.",
    ),
    row(
        "The agent resumes: executes if approved, skips if rejected",
        "gate/test_decide.py::test_an_approved_call_runs_once_and_a_declined_one_never",
    ),
    row("People view and act on pending approvals by REST", ASKED, AFTER_YES, AFTER_NO),
    row(
        "`enabled` is false by default",
        GATED,
        SWITCH,
        instead="Approval is on unless an operator turns it off, which is on record with every call.",
    ),
    row(
        "An approval times out after 5 minutes by default",
        "gate/test_timeouts.py::test_unless_said_otherwise_a_question_is_open_for_five_minutes",
    ),
    row("`tool-names` lists the tools that require approval", RULES),
    row("The pending approval is seen in GET /api/approvals", f"{REST}::test_the_list_is_told_apart_by_status"),
    row("The model is told that it was rejected, and the reason", DECLINED),
    row(
        "The model writes the final response",
        f"{ASKING}::test_a_gated_call_runs_after_the_yes_and_the_model_gets_its_result",
    ),
    row("Listed with id, toolName, arguments and requestedAt", ASKED),
    row(
        "Listed with sessionId and userPrompt",
        f"{REST}::test_an_approval_of_a_conversation_says_which_and_what_the_user_said",
        f"{ASKING}::test_the_user_prompt_is_on_the_disclosure",
    ),
    row("POST …/approve executes the call", AFTER_YES),
    row(
        "`modifiedArguments` modify the arguments before execution",
        f"{REST}::test_changed_arguments_are_recorded_and_are_what_runs",
        f"{REST}::test_changed_arguments_have_to_fit_the_schema",
    ),
    row("If omitted, the original arguments are used", f"{REST}::test_an_answer_needs_no_body", AFTER_YES),
    row("POST …/reject takes a reason", AFTER_NO),
    row(
        "POST …/reject?reason=… takes it from the address",
        AFTER_NO,
        instead="Addresses are kept in the logs of proxies: a reason stands in the body alone.",
    ),
    row("The reason is optional", f"{REST}::test_an_answer_needs_no_body"),
    row(
        "The reason goes back to the model, which informs the user",
        DECLINED,
        "chat/test_commands.py::test_a_no_with_a_reason_reaches_the_model_and_the_page",
    ),
    row(
        "A tool not in the list executes immediately",
        RULES,
        instead="What no rule speaks of is asked about; “others”: “allow” has to be written down.",
    ),
    row(
        "AlwaysApprovePolicy never requires approval",
        RULES,
        "gate/test_policies.py::test_a_tool_that_asks_every_time_cannot_be_loosened",
        instead="never_ask lets run what policies decide about; a tool that asks every time asks all the same.",
    ),
    row("Amounts over 10,000 require approval", RULES),
    row(
        "A missing or unreadable amount requires none",
        RULES,
        "gate/test_policies_broken.py::test_what_would_be_refused_over_a_limit_is_asked_about_when_it_is_no_number",
        instead="What is no number is asked about.",
    ),
    row(
        "A policy may depend on the user's role",
        RULES,
        "gate/test_policies.py::test_people_of_a_group_are_told_apart",
    ),
    row("A composite requires approval if ANY policy says so", RULES),
    row(
        "One's own policy replaces the default",
        RULES,
        "gate/test_policies.py::test_a_condition_and_a_rule_are_heard_both",
        instead="All rules are heard and the strictest wins, so that none is lost by adding one.",
    ),
    row("At the timeout the call is skipped", EXPIRES, "gate/test_sweep.py::test_what_nobody_answered_in_time_expires"),
    row("The model receives that it timed out", EXPIRES, "gate/test_results.py::test_every_outcome_reads_differently"),
    row("The timeout keeps agents from hanging indefinitely", EXPIRES),
    row(
        "The timeout is adjusted to one's workflow",
        "gate/test_timeouts.py::test_a_tool_has_a_time_of_its_own_and_the_installation_one_for_all_others",
    ),
    row(
        "If the approval system errs, the tool executes normally",
        "gate/test_policies_broken.py::test_a_policy_that_gives_no_answer_asks",
        "gate/test_policies_broken.py::test_rules_that_do_not_load_ask_about_everything",
        "gate/test_faults.py::test_a_database_that_goes_away_before_the_start_keeps_the_tool_from_running",
        instead="Any error means not run: a gate that opens when it breaks is opened by breaking it.",
    ),
    row("With `enabled` = false all tools execute", SWITCH),
    row(
        "If the store throws, the tool executes",
        "gate/test_audit.py::test_a_question_that_cannot_be_recorded_whole_is_not_asked",
        "gate/test_audit.py::test_a_yes_that_cannot_be_recorded_whole_is_none",
        instead="What cannot be recorded has not been decided, and does not run.",
    ),
    row(
        "Approved: executes with original or modified arguments",
        "gate/test_decide.py::test_an_edited_call_runs_with_the_edited_arguments",
        AFTER_YES,
    ),
    row("Rejected: skipped, with the reason to the model", DECLINED),
    row(
        "A broken approval system should not break the agent",
        "agent/test_trouble.py::test_a_channel_layer_that_is_down_costs_no_run",
        "agent/test_asking.py::test_a_tool_that_fails_or_breaks_is_told_as_failed",
        instead="The conversation goes on, and what was not approved is not run.",
    ),
    row(
        "The check runs for every call, wherever in the hierarchy",
        "gate/test_submit.py::test_whoever_calls_a_gated_tool_waits",
        "gate/test_one_funnel.py::test_only_the_gates_performing_file_executes_a_tool_of_a_source",
        "gate/test_one_funnel.py::test_only_the_gate_claims_and_executes_calls",
    ),
    row(
        "Of several calls only the gated ones wait",
        f"{ASKING}::test_calls_that_nobody_needs_to_allow_run_beside_each_other_and_beside_a_waiting_one",
    ),
)
