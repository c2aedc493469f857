"""Requirements on an approval gate that attacks on other ones led to, each with the tests that hold it."""

from typing import Final

# By number: what is asked in a few words, and the tests.
REQUIREMENTS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "SR-1": (
        "The card is built from the stored call alone; nothing that a model says stands on it",
        (
            "gate/test_card.py::test_the_card_shows_the_call_and_not_what_the_model_says_of_it",
            "gate/test_card.py::test_a_later_change_of_the_tool_does_not_change_the_card",
            "gate/test_card.py::test_the_digest_covers_every_part_of_what_is_shown",
            "browser/test_hostile.py::test_what_the_assistant_says_beside_a_call_is_not_on_its_card",
        ),
    ),
    "SR-2": (
        "Arguments, names, descriptions and prompts are text, and become no element, request or style",
        (
            "gate/test_card.py::test_no_argument_becomes_an_element_or_an_attribute",
            "gate/test_card.py::test_nothing_of_the_tool_becomes_an_element",
            "gate/test_card.py::test_escape_codes_of_a_terminal_are_shown_not_followed",
            "browser/test_hostile.py::test_whatever_a_value_holds_the_card_keeps_its_shape",
        ),
    ),
    "SR-3": (
        "Every character that cannot be seen or misleads is shown as an escape with a warning",
        (
            "gate/test_visible.py::test_a_character_that_cannot_be_seen_is_shown_as_its_code",
            "gate/test_visible.py::test_a_text_smuggled_in_tag_characters_is_shown",
            "gate/test_visible.py::test_a_direction_override_is_called_one",
            "gate/test_visible.py::test_a_single_right_to_left_letter_is_pointed_out",
            "gate/test_visible.py::test_alphabets_mixed_in_one_word_are_pointed_out",
            "gate/test_visible.py::test_an_encoded_host_name_is_pointed_out",
            "gate/test_visible.py::test_whatever_the_text_nothing_unseen_is_left_in_it",
            "gate/test_card.py::test_hidden_characters_are_shown_in_keys_and_values_with_a_warning",
            "gate/test_card.py::test_in_title_name_value_and_raw_json_misleading_order_is_shown_as_stored",
            "browser/test_hostile.py::test_characters_that_cannot_be_seen_are_shown_as_codes_with_a_warning",
        ),
    ),
    "SR-4": (
        "Each value has a box of its own, and imitates neither labels nor buttons",
        (
            "gate/test_card.py::test_a_value_of_10000_lines_leaves_the_rest_in_sight",
            "gate/test_card.py::test_a_value_in_the_cards_own_words_stays_in_its_box",
            "gate/test_card.py::test_a_value_in_the_title_stands_in_a_box_of_its_own",
            "browser/test_hostile.py::test_whatever_a_value_holds_the_card_keeps_its_shape",
        ),
    ),
    "SR-5": (
        "What is folded says how much it is, and keeps a dangerous call from being approved until it was unfolded",
        (
            "gate/test_card.py::test_of_a_thousand_arguments_each_is_there_and_the_folding_adds_up",
            "gate/test_card.py::test_a_value_folds_after_some_characters_or_lines",
            "gate/test_card.py::test_approve_is_out_of_reach_until_the_script_of_the_page_has_looked",
            "browser/test_hostile.py::test_what_is_folded_says_how_much_it_is_and_opens_whole",
            "browser/test_hostile.py::test_a_critical_call_can_be_approved_only_after_all_was_unfolded_and_reviewed",
        ),
    ),
    "SR-6": (
        "What cannot be laid out whole does not run, and no yes counts for it",
        (
            "gate/test_card.py::test_a_card_with_a_part_missing_is_no_card",
            "gate/test_card.py::test_a_call_that_cannot_be_laid_out_takes_no_yes_and_never_runs",
            "gate/test_card.py::test_a_call_that_cannot_be_laid_out_can_be_declined",
        ),
    ),
    "SR-7": (
        "No argument reaches the tool that was not on the card",
        (
            "gate/test_card.py::test_every_argument_is_on_the_card_also_those_that_the_gate_added",
            "gate/test_submit.py::test_the_arguments_that_run_are_those_on_the_card",
            "gate/test_schema.py::test_the_person_sees_the_defaults_inside_objects_too",
            "upstreams/test_exposure.py::test_the_card_names_what_is_added_to_the_arguments",
        ),
    ),
    "SR-8": (
        "An author's prompt adds text, and hides nothing",
        (
            "gate/test_card_template.py::test_no_template_hides_name_origin_arguments_or_risk",
            "gate/test_card.py::test_nothing_of_the_tool_becomes_an_element",
            "gate/test_prompt.py::test_values_are_told_apart_from_the_templates_own_words",
            "gate/test_prompt.py::test_a_tool_name_that_could_go_on_with_the_sentence_is_told_apart_too",
        ),
    ),
    "SR-9": (
        "What was asked about is compared right before it runs, in every field",
        (
            "gate/test_same_call.py::test_a_yes_is_void_once_anything_is_changed",
            "gate/test_same_call.py::test_a_yes_moved_to_another_call_is_void",
            "gate/test_same_call.py::test_an_edited_yes_is_void_once_the_arguments_are_others",
            "gate/test_same_call.py::test_a_tool_of_the_studio_runs_what_was_shown_and_nothing_newer",
            "gate/test_races.py::test_a_tool_changed_in_the_middle_of_a_claim_is_not_run",
            "gate/test_extending.py::test_what_was_shown_and_its_digest_stay_and_the_yes_counts",
        ),
    ),
    "SR-10": (
        "Arguments come from an answer only as an explicit edit: checked, shown, judged and digested anew",
        (
            "gate/test_decide.py::test_an_edit_that_does_not_fit_approves_nothing",
            "gate/test_decide.py::test_an_edited_call_runs_with_the_edited_arguments",
            "gate/test_policies_lasting.py::test_an_edit_into_what_is_refused_is_not_taken",
            "gate/test_policies_lasting.py::test_an_edit_into_what_a_stricter_rule_covers_says_so_and_is_a_yes_of_its_own",
            "gate/test_again.py::test_a_yes_to_edited_arguments_asks_again_with_what_they_would_do",
            "approvals/test_editing.py::test_what_was_reviewed_is_what_is_approved",
            "approvals/test_editing.py::test_the_rule_that_covers_the_changed_call_is_read_before_the_yes",
        ),
    ),
    "SR-11": (
        "An edit cannot change the tool",
        ("gate/test_decide.py::test_an_edit_cannot_change_the_tool",),
    ),
    "SR-12": (
        "A yes is used once, also after a crash",
        (
            "gate/test_races.py::test_of_many_claims_one_gets_the_call",
            "gate/test_races_everywhere.py::test_of_two_hundred_mixed_answers_from_everywhere_one_counts_and_runs_at_most_once",
            "gate/test_sigkill.py::test_a_process_killed_around_the_tool_leaves_an_unknown_outcome",
            "gate/test_sigkill.py::test_of_three_calls_killed_after_their_effect_none_happens_twice",
            "agent/test_crashes.py::test_an_unknown_call_runs_again_only_after_another_yes",
        ),
    ),
    "SR-13": (
        "Only the exact word is a yes",
        (
            "api/test_approvals.py::test_a_body_that_is_not_understood_is_no_yes",
            "chat/test_commands.py::test_only_the_exact_word_is_a_yes",
            "approvals/test_pages.py::test_what_is_not_one_clear_answer_decides_nothing",
            "mcp_server/test_state.py::test_what_is_not_exactly_a_yes_runs_nothing",
            "mcp_server/test_strictly.py::test_a_yes_of_2026_with_a_key_twice_is_refused_and_leaves_the_question_open",
        ),
    ),
    "SR-14": (
        "What holds is fixed when the question is asked; later rules may only tighten it",
        (
            "gate/test_policies_lasting.py::test_a_later_loosening_frees_no_waiting_call",
            "gate/test_policies_lasting.py::test_what_is_refused_by_now_does_not_run_for_a_yes",
            "gate/test_policies_lasting.py::test_what_was_allowed_does_not_run_by_other_rules",
            "gate/test_grants.py::test_any_change_voids_it_keeps_what_it_let_in_from_starting_and_is_recorded",
            "gate/test_same_call.py::test_a_verdict_of_a_rule_that_was_changed_meanwhile_does_not_run",
            "gate/test_same_call.py::test_what_waits_is_withdrawn_when_its_author_touches_the_tool",
            "api/test_tools.py::test_a_tool_is_deleted_and_its_calls_stay",
        ),
    ),
    "SR-15": (
        "What does not parse never turns into “allowed”",
        (
            "gate/test_policies_loading.py::test_no_field_that_is_changed_turns_a_stored_policy_into_leave",
            "gate/test_policies_mutated.py::test_no_value_in_any_field_makes_a_stored_policy_milder_than_it_says",
            "gate/test_policies_loading.py::test_the_program_does_not_start_with_rules_that_do_not_parse",
            "gate/test_policy.py::test_a_mode_that_is_none_asks",
            "gate/test_policies_broken.py::test_rules_that_do_not_load_ask_about_everything",
        ),
    ),
    "SR-16": (
        "Ids of approvals cannot be guessed, and open nothing",
        (
            "gate/test_ids.py::test_ids_of_questions_are_random_and_say_nothing_of_each_other",
            "gate/test_decide.py::test_to_others_it_looks_as_if_there_were_none",
            "api/test_approvals.py::test_someone_else_s_approval_looks_like_none",
        ),
    ),
    "SR-17": (
        "Any error means not run",
        (
            "gate/test_policies_broken.py::test_a_policy_that_gives_no_answer_asks",
            "gate/test_policies_broken.py::test_a_policy_that_hangs_asks",
            "gate/test_policies_broken.py::test_a_policy_that_deletes_its_tool_runs_nothing",
            "gate/test_policy.py::test_a_condition_that_gives_no_answer_asks",
            "gate/test_faults.py::test_a_policy_that_fails_asks",
            "gate/test_faults.py::test_a_database_that_goes_away_before_the_start_keeps_the_tool_from_running",
            "gate/test_audit.py::test_a_yes_that_cannot_be_recorded_whole_is_none",
            "gate/test_audit.py::test_a_question_that_cannot_be_recorded_whole_is_not_asked",
            "gate/test_decide.py::test_the_databases_clock_judges_and_not_that_of_the_process",
        ),
    ),
    "SR-18": (
        "No identity of an agent, a tool or an MCP client decides",
        (
            "gate/test_decide.py::test_neither_the_agent_nor_the_system_can_decide",
            "api/test_credentials.py::test_no_token_decides_but_an_approver_s",
            "mcp_server/test_attacks.py::test_a_token_for_mcp_decides_nothing_by_rest_and_no_request_over_mcp_decides",
        ),
    ),
    "SR-19": (
        "Nothing that a client says of itself skips the gate",
        (
            "mcp_server/test_asking.py::test_a_client_that_announces_itself_by_our_own_name_is_asked_like_any_other",
            "mcp_server/test_attacks.py::test_nothing_that_a_client_claims_skips_the_question",
            "mcp_server/test_attacks.py::test_nor_do_more_parameters_or_arguments",
        ),
    ),
    "SR-20": (
        "Who decides comes from the session",
        (
            "api/test_credentials.py::test_the_decider_is_the_person_of_the_session",
            "api/test_credentials.py::test_a_decider_in_the_body_is_refused",
        ),
    ),
    "SR-21": (
        "Whether one may decide is looked up per approval; to others it looks as if there were none",
        (
            "gate/test_decide.py::test_to_others_it_looks_as_if_there_were_none",
            "gate/test_decide.py::test_to_others_a_settled_one_looks_the_same",
            "gate/test_batch.py::test_a_batch_with_a_call_that_is_someone_elses_or_nowhere_decides_nothing",
            "api/test_approvals.py::test_someone_else_s_approval_looks_like_none",
            "approvals/test_pages.py::test_someone_else_finds_nothing_there",
            "chat/test_commands.py::test_nobody_decides_about_the_calls_of_another",
        ),
    ),
    "SR-22": (
        "Links decide nothing: a page shows the card, and a signed-in person posts the answer there",
        (
            "notices/test_links.py::test_scanners_that_follow_every_link_decide_nothing",
            "notices/test_links.py::test_a_link_asks_to_sign_in_and_then_shows_the_card",
            "notices/test_composing.py::test_who_may_decide_hears_with_a_link_and_without_arguments",
            "approvals/inbox/test_mail_scanners.py::test_links_that_are_followed_by_a_program_decide_nothing_and_lead_to_sign_in",
            "approvals/test_pages.py::test_looking_changes_nothing",
        ),
    ),
    "SR-23": (
        "No answer comes by webhook; what we send can be verified, and a replay refused",
        (
            "notices/test_links.py::test_no_address_takes_an_answer_from_whoever_is_not_signed_in",
            "notices/test_documented.py::test_it_takes_each_message_once_and_refuses_what_was_replayed_changed_or_is_old",
            "notices/test_documented.py::test_the_example_of_the_specification_is_signed_as_it_says",
        ),
    ),
    "SR-24": (
        "No other site's page opens a socket here, sends an answer, or frames the page that takes one",
        (
            "approvals/inbox/test_socket.py::test_a_hostile_page_gets_no_socket",
            "approvals/test_pages.py::test_an_answer_without_a_csrf_token_is_refused",
            "approvals/test_pages.py::test_the_page_cannot_be_framed",
        ),
    ),
    "SR-25": (
        "What matters most is decided by others than the requester, by two people, who have just signed in",
        (
            "gate/test_who_decides.py::test_four_eyes_also_keep_out_a_requester_who_could_decide_otherwise",
            "gate/test_who_decides.py::test_it_runs_with_the_last_of_the_yeses_and_not_before",
            "gate/test_who_decides.py::test_of_two_last_yeses_at_once_none_is_lost_and_it_starts_once",
            "gate/test_who_decides.py::test_the_highest_risk_is_approved_only_shortly_after_signing_in",
            "approvals/test_who_decides.py::test_what_is_of_the_highest_risk_is_approved_after_giving_the_password_again",
            "api/test_who_decides.py::test_the_highest_risk_is_approved_by_no_token_and_by_no_old_sign_in",
            "chat/test_who_decides.py::test_the_highest_risk_needs_a_fresh_sign_in_on_the_page_too",
            "mcp_server/test_who_decides.py::test_the_word_of_a_client_decides_nothing_under_rules",
            "browser/test_who_decides.py::test_two_approve_for_a_third_and_who_comes_too_late_is_told",
        ),
    ),
    "SR-26": (
        "Each decision says how the person was known, and a client's word can be refused",
        (
            "gate/test_decide.py::test_the_decision_says_who_answered_and_how_they_were_known",
            "mcp_server/test_record.py::test_a_clients_word_is_recorded_with_what_it_calls_itself_and_the_token",
            "mcp_server/test_record.py::test_a_signed_in_person_is_recorded_as_one",
            "mcp_server/test_signed_in_only.py::test_a_client_that_could_ask_is_sent_to_the_page",
            "mcp_server/test_word.py::test_it_decides_up_to_the_risk_that_is_allowed",
        ),
    ),
    "SR-27": (
        "No program changes settings, rules, or how often a tool asks",
        (
            "tools_studio/test_authoring.py::test_no_programs_credential_can_make_a_tool_ask_less",
            "tools_studio/test_authoring.py::test_no_programs_credential_can_widen_what_runs_unasked",
            "tools_studio/test_authoring.py::test_no_programs_credential_rewrites_what_the_approver_reads",
            "tools_studio/test_exchange.py::test_no_programs_credential_can_give_a_tool_other_rules_by_an_import",
            "tools_studio/test_signed_in_only.py::test_a_program_may_turn_it_on_and_not_off",
            "upstreams/test_exposure.py::test_a_program_may_expose_what_asks_and_loosen_nothing",
            "api/test_tool_history.py::test_no_api_token_restores_a_version_that_asked_less_often",
            "approvals/test_texts.py::test_over_rest_no_program_and_nobody_else_changes_them",
            "approvals/test_more_time.py::test_over_rest_only_who_may_decide_can",
            "api/test_grants.py::test_an_api_token_neither_gives_nor_revokes",
            "gate/test_grants.py::test_only_a_signed_in_person_or_their_token_gives_one",
        ),
    ),
    "SR-28": (
        "A proxied tool is pinned whole: any change withholds it, shows a diff, voids grants and asks again",
        (
            "upstreams/risk/test_fingerprint.py::test_every_change_gives_another_fingerprint_and_is_named",
            "upstreams/test_hostile_changes.py::test_one_character_changed_between_list_and_call_stops_the_call",
            "upstreams/test_hostile_changes.py::"
            "test_one_character_changed_with_a_notice_withholds_the_tool_and_voids_what_waits",
            "upstreams/test_hostile_changes.py::test_a_change_that_was_announced_counts_before_the_list_was_read_again",
            "upstreams/test_servers.py::test_a_changed_credential_is_another_identity_and_shows_nothing",
            "upstreams/test_ledger.py::test_a_changed_tool_is_shown_side_by_side",
            "gate/test_grants.py::test_any_change_voids_it_keeps_what_it_let_in_from_starting_and_is_recorded",
        ),
    ),
    "SR-29": (
        "A yes for a tool of one server is none for a tool of that name on another",
        (
            "upstreams/test_discovery.py::test_the_same_name_on_another_server_is_another_tool",
            "upstreams/test_hostile_changes.py::"
            "test_a_yes_for_one_server_is_none_for_another_with_a_tool_of_the_same_name",
        ),
    ),
    "SR-30": (
        "A new tool on a known server is not offered, and then asks",
        (
            "upstreams/test_discovery.py::test_new_tools_are_not_offered",
            "upstreams/test_hostile_changes.py::test_a_tool_that_appears_on_a_known_server_is_not_offered_and_then_asks",
        ),
    ),
    "SR-31": (
        "What a server says of its tools may raise their risk, never lower it",
        (
            "upstreams/test_hostile_changes.py::test_hints_may_raise_the_risk_and_never_lower_it",
            "upstreams/risk/test_rubric.py::test_no_hint_ever_lowers_the_level",
        ),
    ),
    "SR-32": (
        "Every route into a tool passes the one gate",
        (
            "gate/test_one_funnel.py::test_only_the_gates_performing_file_executes_a_tool_of_a_source",
            "gate/test_one_funnel.py::test_only_the_gate_claims_and_executes_calls",
            "gate/test_one_funnel.py::test_a_second_way_in_would_be_seen",
            "upstreams/test_faults.py::test_whoever_calls_is_asked_and_the_server_is_called_once_after_the_yes",
            "project_tools/test_through_the_gate.py::test_a_function_that_asks_runs_after_a_yes_and_not_before",
            "tools_studio/test_trials.py::test_a_test_of_a_gated_tool_asks_like_every_other_call",
            "api/test_tools.py::test_trying_a_tool_that_asks_waits_for_a_yes",
        ),
    ),
    "SR-33": (
        "A sealed state survives new keys and restarts, and counts for nobody and nothing else",
        (
            "mcp_server/test_state.py::test_a_yes_to_one_call_is_none_to_another",
            "mcp_server/test_state.py::test_a_yes_after_the_deadline_is_too_late",
            "mcp_server/test_state.py::test_a_tool_that_changed_meanwhile_is_not_run",
            "mcp_server/test_state.py::test_a_revoked_token_answers_nothing",
            "mcp_server/test_state.py::test_keys_may_change_without_dropping_what_waits",
        ),
    ),
    "SR-34": (
        "Only an accept runs the tool; every other answer is told apart",
        (
            "mcp_server/test_asking.py::test_whatever_is_not_a_plain_yes_does_not_run_it_and_is_told_apart",
            "mcp_server/test_asking.py::test_a_client_that_answers_with_an_error_does_not_run_it",
            "mcp_server/test_older.py::test_an_answer_that_is_none_withdraws_the_call",
            "mcp_server/test_older.py::test_a_client_that_dies_with_the_question_open_withdraws_the_call",
            "mcp_server/test_state.py::test_what_is_not_exactly_a_yes_runs_nothing",
            "mcp_server/test_attacks.py::test_every_way_of_not_saying_yes_reads_differently",
        ),
    ),
    "SR-35": (
        "A client that cannot ask is never let through",
        (
            "mcp_server/test_attacks.py::"
            "test_a_client_that_did_not_say_it_can_ask_is_not_asked_and_its_answer_counts_for_nothing",
            "mcp_server/test_third_party.py::test_a_gated_call_of_the_inspector_which_cannot_ask_is_refused",
            "mcp_server/test_inbox.py::"
            "test_a_form_only_client_waits_for_the_inbox_where_a_signed_in_person_has_to_decide",
        ),
    ),
    "SR-36": (
        "A question of an upstream server is named as its own, and looks like no card",
        (
            "upstreams/test_questions_pages.py::test_the_servers_words_are_text_in_a_box_that_names_it",
            "browser/test_questions.py::test_it_does_not_look_or_read_like_a_card_of_ours_whatever_it_says",
            "upstreams/test_questions.py::test_answering_a_question_decides_nothing_at_the_gate",
        ),
    ),
    "SR-37": (
        "What its provider executes cannot be flagged as gated",
        ("upstreams/test_hostile_changes.py::test_what_only_its_server_would_run_cannot_be_flagged_as_gated",),
    ),
    "SR-38": (
        "Words of people reach the model as data, and no longer than so",
        (
            "gate/test_results.py::test_the_reason_of_a_decline_is_data_and_nothing_else",
            "gate/test_results.py::test_a_notice_of_edited_arguments_is_data_and_has_a_bound",
            "gate/test_texts.py::test_what_the_person_said_is_added_where_they_said_something_and_stays_data",
            "mcp_server/test_attacks.py::test_a_reason_for_declining_is_data_whatever_it_says",
        ),
    ),
    "SR-39": (
        "What is pressed within half a second of the card does not count",
        (
            "browser/test_modal.py::test_clicks_and_keys_count_only_half_a_second_after_the_card_appeared",
            "browser/test_preview.py::test_clicks_on_the_new_card_count_only_after_a_moment",
            "browser/test_modal.py::test_decide_later_leaves_the_answer_in_the_transcript_and_the_composer_as_it_was",
        ),
    ),
    "SR-40": (
        "Approve is never the default, and Enter alone on a fresh card does nothing",
        (
            "browser/test_modal.py::test_focus_is_on_the_heading_and_no_key_on_it_decides",
            "browser/test_modal.py::test_decline_comes_before_approve_and_stop_after_the_cards",
        ),
    ),
    "SR-41": (
        "Questions are limited in number",
        (
            "mcp_server/test_inbox.py::test_no_more_than_so_many_calls_of_a_token_wait",
            "mcp_server/test_inbox.py::test_identical_calls_at_once_take_up_one_call_once",
            "agent/test_limits.py::test_nobody_is_asked_a_third_time_about_the_same_call",
            "agent/test_held.py::test_the_run_pauses_and_asks_the_rest_in_the_models_order",
            "agent/test_held.py::test_the_page_and_rest_say_that_more_is_to_come",
            "gate/test_joining.py::test_they_are_one_card_and_one_line_that_say_how_often_it_was_asked",
            "gate/test_joining.py::test_one_yes_runs_exactly_one_and_the_other_is_told_where_its_outcome_is",
            "gate/test_limits.py::test_beyond_the_limit_of_a_person_every_kind_of_caller_is_refused_in_plain_words",
            "gate/test_limits.py::test_many_at_once_do_not_pass_the_limit_by_one",
        ),
    ),
    "SR-42": (
        "How long an answer took since its card was shown, and whether all of it was opened, is kept and marked",
        (
            "gate/test_attention.py::test_the_first_display_is_kept_once_per_person_and_round",
            "gate/test_attention.py::test_how_an_answer_came_about_is_on_the_decision_and_its_event",
            "gate/test_attention.py::test_a_yes_faster_than_it_can_be_read_is_marked_in_plain_words",
            "gate/test_attention.py::test_several_answered_together_are_timed_over_all_that_was_listed",
            "approvals/test_attention.py::test_the_mark_is_on_the_record_and_not_hidden_from_its_person",
            "insights/test_figures.py::test_edit_and_decline_rates_are_known_per_tool_and_per_person",
            "insights/test_page.py::test_everyone_reads_the_mark_on_their_own_decision",
            "mcp_server/test_attention.py::"
            "test_an_elicitation_is_shown_when_it_is_delivered_and_its_answer_is_timed_from_there",
        ),
    ),
    "SR-43": (
        "A standing yes states its exact scope before the click, and never exists for the highest risk",
        (
            "approvals/test_grants.py::test_the_scope_is_read_in_words_before_the_click_and_the_click_gives_exactly_that",
            "browser/test_grants.py::test_a_grant_is_given_in_words_used_up_asked_again_and_revoked",
            "gate/test_grants.py::test_a_tool_that_asks_every_time_or_is_of_the_highest_risk_gets_none",
            "gate/test_grants.py::test_any_change_voids_it_keeps_what_it_let_in_from_starting_and_is_recorded",
            "gate/test_grants_races.py::test_of_many_calls_that_want_the_last_use_one_runs_and_the_others_ask",
            "gate/test_grants_mutated.py::test_a_grant_covers_nothing_any_more_once_any_column_says_something_else",
        ),
    ),
    "SR-44": (
        "Secrets are masked in notices, exports and logs; notices carry no arguments unless an administrator allows it",
        (
            "test_secrecy.py::test_what_looks_like_a_secret_is_hidden_wherever_it_stands",
            "approvals/test_history_export.py::test_secrets_leave_in_neither_kind",
            "notices/test_arguments.py::test_what_looks_like_a_secret_is_hidden_by_its_name_or_its_shape",
            "notices/test_arguments.py::test_the_tool_gets_what_a_notice_hides",
            "notices/test_composing.py::test_who_may_decide_hears_with_a_link_and_without_arguments",
            "notices/test_composing.py::test_arguments_are_told_only_if_an_administrator_allows_it_and_without_secrets",
            "notices/test_delivery.py::test_neither_secrets_nor_arguments_reach_the_log_or_the_record",
            "notices/test_mail.py::test_one_mail_says_what_waits_where_to_look_and_no_arguments",
            "telemetry/test_logs.py::test_a_server_logs_json_without_secrets_and_performs_and_counts_what_the_console_approves",
            "telemetry/test_logs.py::test_every_other_end_has_a_name_too",
            "telemetry/test_logs.py::test_a_name_that_a_model_made_up_is_not_logged",
        ),
    ),
    "SR-45": (
        "Every step is on record, chained by hash; a command names the first broken row; nothing is deleted",
        (
            "record/test_completeness.py::test_each_step_is_on_record_with_why",
            "record/test_verifying.py::test_an_edited_event_is_named",
            "record/test_verifying.py::test_a_deleted_event_is_named",
            "record/test_verifying.py::test_an_event_that_was_put_in_is_named",
            "record/test_verifying.py::test_swapped_events_are_told_from_edited_ones",
            "record/test_verifying.py::test_an_edited_seal_is_named",
            "record/test_verifying.py::test_a_record_cut_off_at_its_end_is_found_by_what_was_noted_beside_it_or_elsewhere",
            "record/test_sealing.py::test_what_commits_out_of_order_is_sealed_once_and_never_taken_for_put_in",
            "record/test_sealing.py::test_of_many_that_seal_at_once_each_event_is_sealed_by_one",
            "record/test_sealing.py::test_a_process_killed_while_it_seals_leaves_a_chain_to_go_on_from",
            "record/test_exporting.py::test_every_line_that_is_edited_removed_moved_or_put_in_is_named",
            "record/test_bolts.py::test_no_model_of_the_record_is_changed_or_deleted",
            "record/test_bolts.py::test_nor_by_what_goes_past_the_models",
            "record/test_bolts.py::test_nor_by_emptying_the_whole_database",
            "record/test_command.py::test_old_batches_are_dropped_whole_with_their_seals_left_and_a_word_on_record",
        ),
    ),
    "SR-46": (
        "The record holds what was shown, with its digest",
        (
            "record/test_completeness.py::test_each_step_is_on_record_with_why",
            "record/test_completeness.py::test_what_was_shown_the_first_time_can_be_proven_after_asking_again",
            "record/test_verifying.py::test_what_was_shown_is_held_to_the_digest_in_the_record",
            "record/test_exporting.py::test_a_receipt_tells_what_was_shown_said_and_run",
        ),
    ),
    "SR-47": (
        "What ran unasked names the rule or grant that let it",
        (
            "record/test_completeness.py::test_what_is_not_asked_names_what_allowed_or_refused_it",
            "record/test_completeness.py::test_what_runs_on_a_grant_names_it",
            "record/test_verifying.py::test_what_ran_unasked_is_held_to_its_arguments",
        ),
    ),
    "SR-48": (
        "Timeout, cancel, decline, refusal by policy and nobody to ask are different values everywhere",
        (
            "approvals/test_told_apart.py::test_each_way_not_to_run_is_a_value_of_its_own_everywhere",
            "gate/test_results.py::test_every_outcome_reads_differently",
        ),
    ),
}

# Those that no test holds yet, each with the reason. The list may only shrink.
PENDING: Final[dict[str, str]] = {}
