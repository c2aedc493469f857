"""One declarative flag or function per tool, and a stream that is suspended at the model's call (003)."""

from typing import Final

from tests.seeds.row import Row, row

ASKING = "agent/test_asking.py"
REQUIRED = "gate/test_policy.py::test_a_required_tool_asks_whatever_its_condition"
FAILS = "gate/test_policy.py::test_a_condition_that_gives_no_answer_asks"
CONDITION = "gate/test_policy.py::test_a_condition_decides"
DECLINED = f"{ASKING}::test_a_declined_call_is_never_entered_and_the_model_is_told_why"
AFTER_YES = f"{ASKING}::test_a_gated_call_runs_after_the_yes_and_the_model_gets_its_result"
ONCE = "gate/test_decide.py::test_an_approved_call_runs_once_and_a_declined_one_never"
ROWS = f"{ASKING}::test_a_run_that_waits_is_nothing_but_rows"
SHOWN = "api/test_approvals.py::test_an_approval_says_what_is_asked"
DECLARED = "project_tools/test_declaring.py::test_a_wrong_option_is_named_with_its_function"

FLAGS: Final[tuple[Row, ...]] = (
    row(
        "Suspends at the tool-call boundary and waits before execute()",
        "chat/test_commands.py::test_a_call_is_asked_about_on_the_page_and_runs_after_the_yes",
        "gate/test_submit.py::test_a_gated_call_waits_and_is_not_run",
    ),
    row(
        "One declarative flag replaces a state machine of one's own",
        "project_tools/test_declaring.py::test_the_bare_decorator_is_the_strictest",
        "project_tools/test_through_the_gate.py::test_a_function_that_asks_runs_after_a_yes_and_not_before",
    ),
    row(
        "There is an audit trail of who approved what",
        "api/test_audit.py::test_the_record_has_what_was_asked_and_who_answered",
    ),
    row(
        "Some tools execute on the client alone",
        DECLARED,
        instead="Every tool runs here, behind the gate: what runs elsewhere nobody here could hold back.",
    ),
    row("requireApproval: true requires approval on every call", REQUIRED),
    row(
        "Input is validated against the schema first",
        "gate/test_submit.py::test_arguments_that_do_not_fit_are_rejected_and_nobody_is_asked",
    ),
    row("A request with call id, tool name, approval id and input is emitted", SHOWN),
    row(
        "The run is suspended and the pending entry persisted",
        ROWS,
        "agent/test_crashes.py::test_a_conversation_that_waits_survives_a_kill_and_its_call_runs_once",
    ),
    row("On approval the loop resumes and runs execute()", AFTER_YES),
    row("On denial a tool error is synthesized and execute() skipped", DECLINED),
    row(
        "A function requires approval only when a predicate holds",
        CONDITION,
        "project_tools/test_through_the_gate.py::test_a_condition_decides_where_the_mode_says_so",
    ),
    row("It receives the validated input", "gate/test_policies.py::test_what_the_rules_say", CONDITION),
    row(
        "It receives who calls, and for whom",
        "gate/test_policies.py::test_callers_are_told_apart",
        "gate/test_policies.py::test_people_of_a_group_are_told_apart",
    ),
    row(
        "It receives the agent's workspace",
        CONDITION,
        instead="A condition sees the arguments alone, in the sandbox; a class of one's own sees call, tool, caller.",
    ),
    row(
        "If it throws, approval is required",
        FAILS,
        "gate/test_policies_broken.py::test_a_policy_that_gives_no_answer_asks",
    ),
    row("A buggy gate suspends rather than bypasses the human", FAILS),
    row(
        "isAutomatic is set when the gate decided either way",
        "gate/test_policies.py::test_what_the_rules_say",
        "api/test_policies.py::test_a_call_says_whether_anyone_was_asked",
        instead="It says that nobody was asked: whether a rule or a person asked for the question is in its reason.",
    ),
    row(
        "No dialog needs to be shown for automatic decisions",
        f"{ASKING}::test_a_run_counts_as_waiting_only_while_a_person_is_asked",
    ),
    row(
        "The card names the tool and shows the input",
        "gate/test_card.py::test_the_card_shows_the_call_and_not_what_the_model_says_of_it",
        "gate/test_card.py::test_the_raw_arguments_are_all_of_them",
    ),
    row(
        "Approve and Deny stand on the card",
        "browser/test_modal.py::test_decline_comes_before_approve_and_stop_after_the_cards",
    ),
    row(
        "Each of several requests has a card",
        "browser/test_modal.py::test_several_calls_of_one_turn_share_one_modal_and_are_decided_one_by_one",
    ),
    row(
        "The answer has approvalId, approved and an optional reason",
        "chat/test_commands.py::test_only_the_exact_word_is_a_yes",
        "chat/test_commands.py::test_a_no_with_a_reason_reaches_the_model_and_the_page",
        "api/test_approvals.py::test_a_body_that_is_not_understood_is_no_yes",
    ),
    row(
        "After the answer the page attaches to the new run",
        "chat/test_connecting.py::test_a_page_gets_the_whole_state_at_once",
        "chat/test_tabs.py::test_an_answer_in_one_tab_takes_the_card_away_in_all",
    ),
    row("A denial is recorded", "api/test_approvals.py::test_after_a_no_the_call_never_runs_and_the_reason_is_kept"),
    row("The error says that the user did not approve, with the reason", DECLINED),
    row("It is in the history, so that the model sees it next", DECLINED),
    row("execute() never fires for the denied call", ONCE),
    row(
        "To the model, denial looks like any other tool failure",
        "gate/test_results.py::test_every_outcome_reads_differently",
        "gate/test_results.py::test_a_declined_call_is_not_to_be_repeated",
        instead="The model is told the truth: declined, expired, refused, failed and unknown read differently.",
    ),
    row("The model can react: apologise, propose, give up", DECLINED),
    row("An `always` gate does not ask the function", REQUIRED),
    row(
        "The pending entry has a deadline",
        SHOWN,
        "gate/test_decide.py::test_a_late_answer_is_refused_without_any_sweeper",
    ),
    row("The run resolves as suspended", f"{ASKING}::test_a_run_counts_as_waiting_only_while_a_person_is_asked"),
    row(
        "The handler closes the stream while suspended",
        "chat/test_tabs.py::test_every_tab_shows_what_is_said_in_one",
        instead="The page keeps its socket: the wait is in rows, and costs no stream.",
    ),
    row(
        "The chat handler resumes the run after the answer",
        AFTER_YES,
        "agent/test_claims.py::test_of_many_that_wake_a_run_one_gets_it",
    ),
    row("Contradictory options are refused when the tool is declared", DECLARED),
    row("One approval per tool call", "gate/test_decide.py::test_a_second_answer_is_told_the_first"),
    row(
        "Resubmitting a resolved approval returns already_completed",
        "api/test_approvals.py::test_a_second_answer_is_told_the_standing_outcome",
        "chat/test_commands.py::test_the_second_answer_is_told_that_it_came_too_late",
    ),
    row(
        "The approval id is made of run id and call id",
        "gate/test_ids.py::test_ids_of_questions_are_random_and_say_nothing_of_each_other",
        instead="Ids are random: models use call ids again, and an id must not be guessed from another.",
    ),
    row(
        "All runtimes support stateless approval",
        "agent/test_two_processes.py::test_what_is_asked_in_one_process_is_decided_in_the_other_and_both_pages_follow",
        "chat/test_uvicorn.py::test_a_conversation_runs_under_uvicorn_and_its_end_is_told_as_a_restart",
    ),
    row("Suspended: execute() was not called; approved: called once", ONCE),
    row("Denied: a tool error in the history, execute() never called", DECLINED, ONCE),
)
