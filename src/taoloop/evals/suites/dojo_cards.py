"""What each tool of AgentDojo's four suites can do, as a careful operator writes it from the tool's documentation.

One line per tool: its tier, whether it sends data out, and what each of its arguments is to a call. Nothing here
looks at a task, a goal or a figure of a benchmark. How it was decided:

- `destructive`: something is lost or cannot be taken back (deleting, cancelling, removing a person with all that is
  theirs, a transfer of money, a password). Everything else that changes something is `write`. A message is `write` too:
  that it cannot be called back is what egress stands for.
- egress: somebody outside of the user's own account learns something: mail, messages, pages, payments (the recipient
  reads the subject), bookings (the house gets name and telephone number), a person who is given access, and a page that
  is fetched (its address is what is sent). Where only some arguments do that, these are named.
- ids: fields of a look-up by name whose value the service itself makes. A search through contents gets none: whoever
  can write there could have a thing of theirs found. Of the look-ups only that of a file goes by its name alone.
- `get_unread_emails` marks mails as read; it counts as a read, as every mail program does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from taoloop.core.cards.tool_card import Tier


@dataclass(frozen=True, slots=True)
class ToolContract:
    """What the operator says of one tool, beside what its documentation and its schema say."""

    tier: Tier
    """What a call can change."""
    egress: bool | tuple[str, ...] = False
    """Whether a call sends data out, or which of its arguments do."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """What each argument is to a call."""
    ids: Mapping[str, str] = field(default_factory=dict)
    """Fields of the output whose ids the service itself makes, with their kinds."""


READ = ToolContract("read")

_READS = (
    # banking
    "get_iban get_balance get_most_recent_transactions get_scheduled_transactions read_file get_user_info "
    # slack
    "get_channels read_channel_messages read_inbox get_users_in_channel "
    # travel
    "get_user_information get_all_hotels_in_city get_hotels_prices get_rating_reviews_for_hotels get_hotels_address "
    "get_all_restaurants_in_city get_cuisine_type_for_restaurants get_restaurants_address "
    "get_rating_reviews_for_restaurants get_dietary_restrictions_for_all_restaurants "
    "get_contact_information_for_restaurants get_price_for_restaurants check_restaurant_opening_hours "
    "get_all_car_rental_companies_in_city get_car_types_available get_rating_reviews_for_car_rental "
    "get_car_fuel_options get_car_rental_address get_car_price_per_day get_flight_information "
    # workspace, and the calendar of travel
    "get_unread_emails get_sent_emails get_received_emails get_draft_emails search_emails search_contacts_by_name "
    "search_contacts_by_email get_current_day search_calendar_events get_day_calendar_events "
    "search_files_by_filename get_file_by_id list_files search_files"
)

CARDS: Mapping[str, ToolContract] = {
    **dict.fromkeys(_READS.split(), READ),
    "search_files_by_filename": ToolContract("read", ids={"id_": "file"}),
    # banking
    "send_money": ToolContract(
        "destructive", True, {"recipient": "target", "amount": "value", "subject": "content", "date": "minor"}
    ),
    "schedule_transaction": ToolContract(
        "write",
        True,
        {"recipient": "target", "amount": "value", "subject": "content", "date": "value", "recurring": "value"},
    ),
    "update_scheduled_transaction": ToolContract(
        "write",
        ("recipient", "subject"),
        {
            "id": "ref:transaction",
            "recipient": "target",
            "amount": "value",
            "subject": "content",
            "date": "value",
            "recurring": "value",
        },
    ),
    "update_password": ToolContract("destructive", False, {"password": "value"}),
    "update_user_info": ToolContract(
        "write", False, {"first_name": "value", "last_name": "value", "street": "value", "city": "value"}
    ),
    # slack
    "get_webpage": ToolContract("read", True, {"url": "target"}),
    "post_webpage": ToolContract("write", True, {"url": "target", "content": "content"}),
    "send_direct_message": ToolContract("write", True, {"recipient": "target", "body": "content"}),
    "send_channel_message": ToolContract("write", True, {"channel": "target", "body": "content"}),
    "add_user_to_channel": ToolContract("write", True, {"user": "target", "channel": "target"}),
    "invite_user_to_slack": ToolContract("write", True, {"user": "target", "user_email": "target"}),
    "remove_user_from_slack": ToolContract("destructive", False, {"user": "target"}),
    # travel
    "reserve_hotel": ToolContract("write", True, {"hotel": "target", "start_day": "value", "end_day": "value"}),
    "reserve_restaurant": ToolContract("write", True, {"restaurant": "target", "start_time": "value"}),
    "reserve_car_rental": ToolContract(
        "write", True, {"company": "target", "start_time": "value", "end_time": "value"}
    ),
    # workspace, and the mail and calendar of travel
    "send_email": ToolContract(
        "write",
        True,
        {
            "recipients": "target",
            "cc": "target",
            "bcc": "target",
            "subject": "content",
            "body": "content",
            "attachments": "ref:file",
        },
    ),
    "delete_email": ToolContract("destructive", False, {"email_id": "ref:email"}),
    "create_calendar_event": ToolContract(
        "write",
        ("participants",),
        {
            "title": "content",
            "description": "content",
            "location": "content",
            "start_time": "content",
            "end_time": "minor",
            "participants": "target",
        },
    ),
    "cancel_calendar_event": ToolContract("destructive", True, {"event_id": "ref:event"}),
    "reschedule_calendar_event": ToolContract(
        "write", True, {"event_id": "ref:event", "new_start_time": "value", "new_end_time": "minor"}
    ),
    "add_calendar_event_participants": ToolContract("write", True, {"event_id": "ref:event", "participants": "target"}),
    "create_file": ToolContract("write", False, {"filename": "target", "content": "content"}),
    "append_to_file": ToolContract("write", False, {"file_id": "ref:file", "content": "content"}),
    "delete_file": ToolContract("destructive", False, {"file_id": "ref:file"}),
    "share_file": ToolContract("write", True, {"file_id": "ref:file", "email": "target", "permission": "value"}),
}


def sends_out(tool: str, args: Mapping[str, object]) -> bool:
    """Whether this call sends data out."""
    egress = CARDS[tool].egress
    return any(args.get(name) for name in egress) if isinstance(egress, tuple) else egress


def is_destructive(tool: str) -> bool:
    """Whether this call cannot be taken back."""
    return CARDS[tool].tier == "destructive"


def has_effect(tool: str, args: Mapping[str, object]) -> bool:
    """Whether this call changes something or sends data out."""
    return CARDS[tool].tier in ("write", "destructive") or sends_out(tool, args)
