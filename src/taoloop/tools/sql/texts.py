"""What the tools of a database say to the model: their cards, and why a statement was not carried out."""

from __future__ import annotations

from taoloop.tools.texts import ToolTexts

TEXTS = ToolTexts(
    {
        # cards
        "params": 'Values for :name in the statement, such as {{"since": "2026-01-01"}}; decimals and dates as text.',
        "query_purpose": "Read rows of the {kind} database {name!r} with one SQL statement;"
        " at most {rows} rows per call.{about}",
        "query_use_when": "The answer stands in this database.",
        "query_avoid_when": "Something is to be changed: the connection is read-only.",
        "query_statement": "One statement that gives rows, such as SELECT, in the SQL of {kind};"
        " values as :name from params. {tables}",
        "limit": "How many rows to give.",
        "offset": "How many rows to leave out first: next_offset of the page before, with the same"
        " statement. Give the statement an ORDER BY.",
        "describe_table_purpose": "Show the columns, keys, indexes and comments of one table of {name!r}, never its"
        " rows; without a table, the list of tables.",
        "describe_table_purpose_samples": "Show the columns, keys, indexes and comments of one table of {name!r}, and"
        " on request some of its values; without a table, the list of tables.",
        "describe_table_use_when": "The card of the query tool does not have the table or column that is needed.",
        "describe_table_avoid_when": "The columns are known already.",
        "table": "A name of the list of tables, as it stands.",
        "samples": "Whether to show up to three values of each column.",
        "no_such_table_advice": "Take a name of the list.",
        "execute_purpose": "Change rows of the {kind} database {name!r} with one SQL statement in a transaction;"
        " at most {rows} rows per call.{about}",
        "execute_purpose_structure": "Change rows or the structure of the {kind} database {name!r} with one SQL"
        " statement in a transaction; at most {rows} rows per call.{about}",
        "execute_use_when": "The task asks for this very change.",
        "execute_avoid_when": "Rows are only to be read; or it is not certain which rows the condition meets:"
        " query them first.",
        "execute_statement": "One statement such as INSERT, UPDATE or DELETE, in the SQL of {kind};"
        " values as :name from params. {tables}",
        "about": " {text}.",
        "tables": "Tables:\n{tables}",
        "no_tables": "The tables are not known yet: describe_table lists them.",
        "also": "Also: {names}",
        "more_tables": "and {count:,} more, which describe_table lists",
        # what to do about an error, by its code
        "database_unavailable_advice": "Try again later, or say that the database cannot be reached.",
        "database_busy_advice": "Try again.",
        "database_unusable_advice": "Say what the message says; no statement will do better.",
        "statement_timeout_advice": "Ask for less: fewer rows, a narrower condition, no cross join.",
        "statement_failed_advice": "Correct the statement as the message says; describe_table shows the columns.",
        "not_allowed_advice": "Do without it: the connection does not permit this, whatever the statement says.",
        "several_statements_advice": "Send one statement per call, without a second one after a semicolon.",
        "bad_params_advice": "Write :name in the statement for each value of params.",
        "value_too_large_advice": "Select a part of the value, with substr or length.",
        "no_rows_advice": "Send a statement that gives rows, such as SELECT.",
        "too_many_rows_advice": "Nothing was changed; narrow the condition.",
        "structure_change_advice": "Nothing was changed; change rows only.",
        # errors
        "said": "{text}",
        "stopped": "The statement was stopped: it took more than {seconds:g} s, or the call ended.",
        "no_answer": "The database does not answer: {text}",
        "several": "That is more than one statement; none was carried out.",
        "no_rows": "The statement gives no rows, and this tool can only read.",
        "rows_late": "The rows took more than {seconds:g} s to come.",
        "rows_late_changed": "The time was over before all rows had come; nothing was changed.",
        "change_late": "The time was over before the change was made; it was rolled back.",
        "too_many_rows": "It would change {count:,} rows, and at most {limit:,} may change in one call.",
        "commit_lost": "The connection broke while the change was being confirmed. It may or may not have happened.",
        "commit_lost_once_hint": "Find out with a query whether it happened before you try again.",
        "carried_out": "This very call was being carried out elsewhere; ask again for it.",
        "too_much": "More than {limit:,} bytes came at once, so the connection was cut; nothing was changed.",
        "unsendable": "A value of the statement cannot be sent: {reason}.",
        "unused_param": "The value {name!r} of params has no place in the statement.",
        "unused_param_hint": "Write :{name} outside of quotes where it belongs, or leave it away.",
        "ended_transaction": "The statement ended its transaction, so nothing of it was kept.",
        "structure": "{what} changes more than rows, which is not permitted here.",
        "this_statement": "This statement",
        "no_file": "There is no file {name!r} where the database should be.",
        "no_such_table": "There is no table {name!r} here.",
        "no_such_table_hint": "Leave `table` away for the list of tables.",
        "did_you_mean": "Did you mean {names}?",
        "or": " or ",
        # notes on results
        "more_rows": "There are more rows: repeat the call with offset {offset} and the same statement."
        " Without ORDER BY, pages may overlap.",
        "rows_cut": "Not all rows that the statement gave back are shown; all were changed.",
    },
)
