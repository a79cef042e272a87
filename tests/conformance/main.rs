//! What every adapter promises, tried on each of them against its own dialect of the fake provider.
//!
//! A new adapter implements [`subject::Subject`] in a file of its own, and is added at the end of this one; if it can do more
//! than text, [`beyond::Beyond`] too.

mod anthropic;
mod azure;
#[cfg(feature = "bedrock")]
mod bedrock;
mod beyond;
mod gemini;
mod ollama;
mod openai;
mod responses;
mod rounds;
mod subject;
mod suite;
mod suite_forms;
mod suite_stream;
mod suite_tools;

/// Makes a module of tests, one a promise, for one adapter.
macro_rules! conforms {
    ($module:ident: $subject:ty) => {
        conforms! { @ $module, $subject:
            a_text_comes_back_with_all_that_is_told_of_it,
            a_request_is_identified,
            everything_that_was_set_is_sent,
            nothing_is_sent_that_was_not_set,
            turns_of_one_role_in_a_row_are_taken,
            extra_fields_come_last,
            every_finish_reason_has_a_neutral_word,
            usage_holds_the_parts_within_the_totals,
            reasoning_is_kept_apart_from_the_text,
            a_refusal_is_an_answer,
            a_filter_that_leaves_nothing_is_an_error,
            a_filter_that_leaves_text_is_an_answer,
            an_empty_answer_is_an_error_that_is_retried,
            an_answer_cut_before_its_first_word_is_not_retried,
            unknown_fields_and_nulls_cost_nothing,
            every_status_has_its_code,
            an_overload_is_retried,
            a_rate_limit_says_how_long_to_wait,
            a_used_up_quota_is_not_retried,
            an_error_in_a_success_is_an_error,
            what_is_not_the_protocol_is_said_to_be_that,
            an_answer_over_the_cap_is_not_read_past_it,
            no_redirect_takes_a_secret_to_another_origin,
            what_a_model_cannot_do_is_refused_before_anything_is_sent,
            a_cancelled_call_leaves_no_connection,
            the_key_is_in_nothing_that_is_printed,
            a_bad_base_url_is_found_before_the_first_call,
        }
    };
    (@ $module:ident, $subject:ty: $($promise:ident),+ $(,)?) => {
        mod $module {
            $(
                #[tokio::test]
                async fn $promise() -> crate::suite::Outcome {
                    crate::suite::$promise::<$subject>().await
                }
            )+
        }
    };
}

/// Makes a module of tests of what goes beyond text, one a promise, for one adapter that implements
/// [`Beyond`](beyond::Beyond).
macro_rules! conforms_beyond {
    ($module:ident: $subject:ty) => {
        mod $module {
            conforms_beyond! { @ suite_stream, $subject:
                a_stream_brings_the_pieces_that_were_sent,
                a_stream_comes_to_the_reply_that_a_call_gives,
                a_stream_that_is_cut_is_interrupted_and_keeps_what_came,
                an_error_in_a_stream_means_what_it_means_elsewhere,
                a_stream_is_refused_like_a_call,
                a_dropped_stream_leaves_no_connection,
                calls_that_are_only_passed_on_are_told_apart,
            }
            conforms_beyond! { @ suite_tools, $subject:
                a_tool_is_called_and_its_result_goes_back,
                text_may_come_beside_a_tool_call,
                the_choice_of_tools_is_sent,
                a_tool_without_arguments_can_be_called,
                malformed_arguments_are_an_error_with_their_text,
                a_tool_that_was_not_given_is_a_breach,
                a_name_that_is_no_name_is_refused_before_anything_is_sent,
            }
            conforms_beyond! { @ suite_forms, $subject:
                an_answer_of_a_schema_is_read_and_held_to_it,
                an_answer_of_a_schema_streams,
                any_json_can_be_asked_for,
                pictures_are_sent,
                how_much_to_think_is_sent_in_the_protocols_own_form,
                reasoning_goes_back_with_the_turn_that_it_led_to,
            }
        }
    };
    (@ $suite:ident, $subject:ty: $($promise:ident),+ $(,)?) => {
        $(
            #[tokio::test]
            async fn $promise() -> crate::suite::Outcome {
                crate::$suite::$promise::<$subject>().await
            }
        )+
    };
}

conforms! { openai_chat: crate::openai::OpenAiChat }
conforms! { openai_responses: crate::responses::Responses }
conforms! { azure_chat: crate::azure::AzureChat }
conforms! { azure_deployment: crate::azure::AzureDeployment }
conforms! { anthropic_messages: crate::anthropic::AnthropicMessages }
conforms! { gemini_generate: crate::gemini::GeminiGenerate }
conforms! { vertex_generate: crate::gemini::VertexGenerate }
conforms! { ollama_chat: crate::ollama::OllamaChat }
#[cfg(feature = "bedrock")]
conforms! { bedrock_signed: crate::bedrock::BedrockSigned }
#[cfg(feature = "bedrock")]
conforms! { bedrock_bearer: crate::bedrock::BedrockBearer }

conforms_beyond! { openai_chat_beyond: crate::openai::OpenAiChat }
conforms_beyond! { openai_responses_beyond: crate::responses::Responses }
conforms_beyond! { azure_chat_beyond: crate::azure::AzureChat }
conforms_beyond! { gemini_generate_beyond: crate::gemini::GeminiGenerate }
conforms_beyond! { vertex_generate_beyond: crate::gemini::VertexGenerate }
#[cfg(feature = "bedrock")]
conforms_beyond! { bedrock_signed_beyond: crate::bedrock::BedrockSigned }
#[cfg(feature = "bedrock")]
conforms_beyond! { bedrock_bearer_beyond: crate::bedrock::BedrockBearer }
conforms_beyond! { anthropic_messages_beyond: crate::anthropic::AnthropicMessages }
conforms_beyond! { ollama_chat_beyond: crate::ollama::OllamaChat }
