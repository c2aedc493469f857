"""Policies, strategies and user interfaces as components that are put together (004)."""

from typing import Final

from tests.seeds.row import Row, row

RULES = "gate/test_policies.py::test_what_the_rules_say"
LOADED = "gate/test_policies_loading.py::test_a_policy_comes_back_as_it_was"
REFUSED = "gate/test_policies_loading.py::test_what_does_not_parse_is_refused_with_where_and_why"
ONCE = "gate/test_policies_once.py::test_the_same_arguments_are_asked_about_once"
SUCCEEDED = "gate/test_policies_once.py::test_only_what_succeeded_counts_as_approved_before"
EDITED = "gate/test_decide.py::test_an_edited_call_runs_with_the_edited_arguments"
DECIDED = "gate/test_decide.py::test_an_approved_call_runs_once_and_a_declined_one_never"
WAITS = "gate/test_submit.py::test_a_gated_call_waits_and_is_not_run"
KEPT = "api/test_approvals.py::test_after_a_no_the_call_never_runs_and_the_reason_is_kept"

COMPONENTS: Final[tuple[Row, ...]] = (
    row("The person's action is confirm, reject or modify", DECIDED, EDITED),
    row(
        "The action type is not enforced",
        "chat/test_commands.py::test_only_the_exact_word_is_a_yes",
        "api/test_approvals.py::test_a_body_that_is_not_understood_is_no_yes",
        "approvals/test_pages.py::test_what_is_not_one_clear_answer_decides_nothing",
        instead="Only the exact words count: what is not understood is no yes.",
    ),
    row("A rejection may carry a reason", KEPT),
    row("New parameters may be given for the tool", EDITED),
    row(
        "New parameters are whatever was given",
        "gate/test_decide.py::test_an_edit_that_does_not_fit_approves_nothing",
        instead="They are checked against the schema and judged by the rules again.",
    ),
    row("The decision names the tool", "api/test_approvals.py::test_an_approval_says_what_is_asked"),
    row("`execute` says whether it runs", DECIDED),
    row(
        "The call id correlates the decision with one invocation",
        "gate/test_same_call.py::test_a_yes_moved_to_another_call_is_void",
        "agent/test_asking.py::test_calls_of_one_turn_are_answered_in_any_order_and_read_in_the_models",
    ),
    row(
        "The call id is optional",
        "gate/test_same_call.py::test_a_yes_moved_to_another_call_is_void",
        "gate/test_same_call.py::test_a_status_alone_is_no_yes",
        instead="A yes is always for exactly one call: by a name alone, another call could run.",
    ),
    row("The feedback has the reason of a rejection", KEPT),
    row(
        "The feedback has the details of a modification",
        "agent/test_asking.py::test_edited_arguments_are_what_runs_and_what_the_model_is_told",
        "gate/test_results.py::test_edited_arguments_are_told",
    ),
    row("The final parameters are kept if confirmed or modified", EDITED),
    row(
        "A decision becomes a dictionary and comes back",
        "api/test_calls.py::test_a_call_tells_who_decided_and_what_became_of_it",
        "gate/test_canonical.py::test_the_database_gives_back_what_it_was_given",
    ),
    row("Always ask: confirmation is always needed", RULES),
    row("Always ask is serialised and comes back", LOADED),
    row("Never ask: the tool proceeds without confirmation", RULES),
    row(
        "Never ask counts whatever else is said",
        "gate/test_policies.py::test_a_tool_that_asks_every_time_cannot_be_loosened",
        RULES,
        instead="Of several rules the strictest counts, and a tool that asks every time still asks.",
    ),
    row("Never ask is serialised and comes back", LOADED),
    row(
        "Ask once per tool with specific parameters",
        ONCE,
        "gate/test_policies_once.py::test_other_arguments_are_asked_about",
    ),
    row("Confirmed parameters are remembered after a confirmation", ONCE, SUCCEEDED),
    row("What was not confirmed is not remembered", SUCCEEDED),
    row(
        "Remembered is the tool's name with its parameters",
        "gate/test_policies_once.py::test_another_tool_is_asked_about_again",
        "gate/test_policies_once.py::test_the_yes_of_one_person_is_none_of_another",
        instead="Also its definition, source and risk, and who said yes: another tool of that name is asked about.",
    ),
    row(
        "What was modified is remembered as confirmed",
        "gate/test_policies_once.py::test_what_was_edited_was_approved_as_it_was_edited",
    ),
    row(
        "What is remembered lives in the policy's own state",
        ONCE,
        "agent/test_policies_restart.py::test_what_waits_over_a_change_of_the_rules",
        instead="It is read from the record, so that a restart forgets nothing and nothing else can add to it.",
    ),
    row("Ask once is serialised and comes back", LOADED),
    row("A policy becomes a dictionary", LOADED),
    row("A policy is made from a dictionary", LOADED, REFUSED),
    row("A policy may be of one's own class", RULES, LOADED),
    row("should_ask receives tool name, description and parameters", RULES),
    row("The policy is told of the outcome afterwards", ONCE, SUCCEEDED),
    row(
        "Execution is blocked until the person has answered",
        WAITS,
        "api/test_approvals.py::test_after_a_yes_the_call_runs_and_before_it_does_not",
    ),
    row(
        "The strategy returns a decision, or a message if rejected",
        DECIDED,
        "agent/test_asking.py::test_a_declined_call_is_never_entered_and_the_model_is_told_why",
    ),
    row(
        "A template words the feedback of a rejection, with the tool's name",
        "gate/test_texts.py::test_a_template_gives_the_message_its_words_with_the_placeholders_filled_in",
        "agent/test_asking.py::test_an_operators_words_are_what_the_model_reads_and_the_facts_beside_them",
    ),
    row(
        "A template words the feedback of a modification, with the final parameters",
        "gate/test_texts.py::test_changed_arguments_are_told_with_the_template_and_the_fact",
        "gate/test_texts.py::test_the_reason_of_a_rule_and_the_spelling_of_others_are_filled_in",
    ),
    row(
        "A template words the person's feedback, with the feedback itself",
        "gate/test_texts.py::test_what_the_person_said_is_added_where_they_said_something_and_stays_data",
    ),
    row(
        "A template should include its placeholder",
        "gate/test_texts.py::test_an_unknown_placeholder_is_refused_at_its_field_with_those_that_are_known",
        "gate/test_texts.py::test_whatever_a_template_says_the_facts_stand_beside_it",
        instead="It may leave them out: what must be told stands in fields beside it, and none may be unknown.",
    ),
    row(
        "run_async does the same for asynchronous programs",
        "gate/test_faults.py::test_who_waits_for_an_approved_call_gets_its_result",
    ),
    row(
        "run_async calls the blocking run by default",
        "agent/test_asking.py::test_a_run_that_waits_is_nothing_but_rows",
        instead="Nothing blocks while a person thinks: a run that waits is rows.",
    ),
    row(
        "A context brings per-request objects such as sockets",
        "chat/test_tabs.py::test_an_answer_in_one_tab_takes_the_card_away_in_all",
        "agent/test_two_processes.py::test_what_is_asked_in_one_process_is_decided_in_the_other_and_both_pages_follow",
        instead="Whoever may answer is found by who they are: no socket of one process has to be passed along.",
    ),
    row(
        "Tools without a strategy, and unknown ones, execute",
        "gate/test_submit.py::test_an_unknown_tool_is_rejected_by_its_exact_name",
        "gate/test_policy.py::test_a_conditional_tool_without_a_condition_asks",
        instead="What is unknown is rejected; what nobody decided about is asked about.",
    ),
    row(
        "A user interface asks for the confirmation and returns it",
        "chat/test_commands.py::test_a_call_is_asked_about_on_the_page_and_runs_after_the_yes",
    ),
    row(
        "The user interface shows tool, description and parameters",
        "gate/test_card.py::test_the_card_shows_the_call_and_not_what_the_model_says_of_it",
    ),
    row(
        "A console asks whoever sits at the terminal",
        "gate/test_decide.py::test_only_a_person_known_as_one_can_decide",
        instead="A person answers who is signed in: whoever sits at a server's terminal is nobody in particular.",
    ),
)
