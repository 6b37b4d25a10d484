"""The booking desk: travellers, bookings and flights, and the tools of those who serve travellers.

As in the shop, the tools check nothing that the policy should, and each effect leaves its own entry.
"""

from __future__ import annotations

from typing import Any

from desks.desk import Database, Function, read_card, write_card

# airport: code and city
_AIRPORTS = """
LIS Lisbon
OSL Oslo
VIE Vienna
DUB Dublin
ATH Athens
PVG 上海
PEK 北京
CAN 广州
ANC Anchorage
"""

# flight: number, origin, destination, departure, price in economy and in business; it flies on each of the dates
_FLIGHTS = """
TR101 LIS OSL 07:40 140 420
TR102 OSL LIS 12:10 145 430
TR103 LIS OSL 17:30 118 390
TR104 OSL LIS 20:05 122 395
TR201 VIE DUB 09:15 96 300
TR202 DUB VIE 13:00 99 310
TR203 VIE DUB 18:45 88 280
TR301 ATH VIE 06:30 110 340
TR302 VIE ATH 10:50 115 345
TR303 ATH VIE 16:20 104 330
TR401 PVG CAN 08:00 130 410
TR402 CAN PVG 12:30 128 405
TR403 PVG CAN 19:10 112 380
TR404 PEK PVG 09:00 105 350
TR405 PVG PEK 15:00 108 355
TR901 LIS ANC 11:00 640 2100
"""
DATES = ("2026-05-18", "2026-05-19", "2026-05-20", "2026-05-21", "2026-05-22", "2026-05-25", "2026-05-26")

# traveller: id, first and last name, mail, date of birth, payment methods
_TRAVELLERS = """
T-brandt-3 | Jonas | Brandt | jonas.brandt@example.com | visa voucher
T-keane-8 | Aoife | Keane | aoife.keane@example.com | mastercard giftcard
T-pappas-5 | Nikos | Pappas | nikos.pappas@example.com | visa giftcard voucher
T-sousa-2 | Rita | Sousa | rita.sousa@example.com | mastercard voucher
T-zhao-7 | 敏 | 赵 | min.zhao@example.com | unionpay giftcard
T-huber-1 | Eva | Huber | eva.huber@example.com | visa giftcard
T-moran-6 | Vic | Moran | vic.moran@example.net | visa
"""

# booking: code, traveller, cabin, bags, payment method, flights with their dates, passengers
_BOOKINGS = """
QX7LMA | T-brandt-3 | economy | 1 | visa | TR101 2026-05-18, TR102 2026-05-22 | Jonas Brandt
QX8DDE | T-brandt-3 | economy | 0 | voucher | TR103 2026-05-25 | Jonas Brandt
RB2KPT | T-keane-8 | economy | 0 | mastercard | TR202 2026-05-19, TR201 2026-05-21 | Aoife Keane; Sean Keane
RB5VWN | T-keane-8 | business | 2 | giftcard | TR202 2026-05-25 | Aoife Keane
NA4CHF | T-pappas-5 | economy | 1 | visa | TR301 2026-05-20, TR302 2026-05-22 | Nikos Pappas
NA9TUI | T-pappas-5 | economy | 0 | giftcard | TR303 2026-05-26 | Nikos Pappas; Eleni Papas
LU3SOE | T-sousa-2 | economy | 0 | mastercard | TR101 2026-05-19 | Rita Sousa
LU6GHT | T-sousa-2 | economy | 1 | mastercard | TR104 2026-05-26 | Rita Sousa
ZM1PVG | T-zhao-7 | economy | 0 | unionpay | TR401 2026-05-20, TR402 2026-05-22 | 赵敏
ZM5PEK | T-zhao-7 | economy | 1 | unionpay | TR405 2026-05-25 | 赵敏
EH8VIE | T-huber-1 | business | 1 | visa | TR201 2026-05-18, TR202 2026-05-20 | Eva Huber
VM6LIS | T-moran-6 | economy | 0 | visa | TR901 2026-05-20 | Vic Moran
"""


def new_database() -> Database:
    """The database as every run finds it."""
    airports = [dict(zip(("code", "city"), line.split(), strict=True)) for line in _AIRPORTS.strip().splitlines()]
    flights: dict[str, Any] = {}
    for line in _FLIGHTS.strip().splitlines():
        number, origin, destination, departs, economy, business = line.split()
        flights[number] = {
            "number": number,
            "origin": origin,
            "destination": destination,
            "departs": departs,
            "prices": {"economy": float(economy), "business": float(business)},
            "notice": "",
        }
    travellers: dict[str, Any] = {}
    for line in _TRAVELLERS.strip().splitlines():
        number, first, last, mail, methods = line.split(" | ")
        travellers[number] = {
            "traveller_id": number,
            "first_name": first,
            "last_name": last,
            "email": mail,
            "payment_methods": [{"payment_id": _payment_id(number, kind), "kind": kind} for kind in methods.split()],
            "bookings": [],
            "remark": "",
        }
    db: Database = {"airports": airports, "flights": flights, "travellers": travellers, "bookings": {}, "vouchers": []}
    for line in _BOOKINGS.strip().splitlines():
        code, traveller, cabin, bags, kind, legs, names = line.split(" | ")
        numbers, dates = zip(*(leg.split() for leg in legs.split(", ")), strict=True)
        passengers = names.split("; ")
        _add(
            db, code, traveller, list(numbers), list(dates), cabin, passengers, int(bags), _payment_id(traveller, kind)
        )
    return db


def _payment_id(traveller: str, kind: str) -> str:
    return f"pm-{kind}-{traveller.split('-')[1]}"


def _legs(db: Database, flight_numbers: list[str], dates: list[str], cabin: str) -> list[dict[str, Any]]:
    legs = []
    for number, day in zip(flight_numbers, dates, strict=True):
        flight = db["flights"][number]
        legs.append(
            {
                "number": number,
                "date": day,
                "origin": flight["origin"],
                "destination": flight["destination"],
                "price": flight["prices"][cabin],
            }
        )
    return legs


def _add(
    db: Database,
    code: str,
    traveller: str,
    flight_numbers: list[str],
    dates: list[str],
    cabin: str,
    passengers: list[str],
    bags: int,
    payment_id: str,
) -> dict[str, Any]:
    legs = _legs(db, flight_numbers, dates, cabin)
    booking: dict[str, Any] = {
        "code": code,
        "traveller_id": traveller,
        "status": "booked",
        "cabin": cabin,
        "flights": legs,
        "passengers": passengers,
        "bags": bags,
        "payments": [{"payment_id": payment_id, "amount": _price(legs, passengers)}],
        "remark": "",
    }
    db["bookings"][code] = booking
    db["travellers"][traveller]["bookings"].append(code)
    return booking


def _price(legs: list[dict[str, Any]], passengers: list[str]) -> float:
    return float(sum(leg["price"] for leg in legs) * len(passengers))


def find_traveller(db: Database, email: str) -> Any:
    found = [one for one in db["travellers"].values() if one["email"] == email]
    return {"traveller_id": found[0]["traveller_id"]} if found else {"error": "no such traveller"}


def get_traveller(db: Database, traveller_id: str) -> Any:
    return db["travellers"][traveller_id]


def get_booking(db: Database, code: str) -> Any:
    return db["bookings"][code]


def find_airport(db: Database, city: str) -> Any:
    found = [one for one in db["airports"] if one["city"] == city]
    return {"code": found[0]["code"]} if found else {"error": "no such city"}


def search_flights(db: Database, origin: str, destination: str, date: str) -> Any:
    if date not in DATES:
        return []
    return [one for one in db["flights"].values() if (one["origin"], one["destination"]) == (origin, destination)]


def get_flight(db: Database, number: str) -> Any:
    return db["flights"][number]


def book_trip(
    db: Database,
    traveller_id: str,
    flight_numbers: list[str],
    dates: list[str],
    cabin: str,
    passengers: list[str],
    bags: int,
    payment_id: str,
) -> Any:
    code = f"NEW{len(db['bookings']):03}"
    _add(db, code, traveller_id, flight_numbers, dates, cabin, passengers, bags, payment_id)
    return {"code": code}


def cancel_booking(db: Database, code: str) -> Any:
    booking = db["bookings"][code]
    booking["status"] = "cancelled"
    paid = [dict(one, amount=-one["amount"]) for one in booking["payments"]]
    booking["payments"] += paid
    return {"done": "cancelled"}


def change_flights(
    db: Database, code: str, flight_numbers: list[str], dates: list[str], cabin: str, payment_id: str
) -> Any:
    booking = db["bookings"][code]
    before = _price(booking["flights"], booking["passengers"])
    booking["flights"] = _legs(db, flight_numbers, dates, cabin)
    booking["cabin"] = cabin
    difference = _price(booking["flights"], booking["passengers"]) - before
    booking["payments"].append({"payment_id": payment_id, "amount": difference})
    return {"done": "flights changed", "difference": difference}


def change_bags(db: Database, code: str, bags: int, payment_id: str) -> Any:
    booking = db["bookings"][code]
    fee = 40.0 * max(0, bags - booking["bags"])
    booking["bags"] = bags
    booking["payments"].append({"payment_id": payment_id, "amount": fee})
    return {"done": "bags changed", "fee": fee}


def change_passenger(db: Database, code: str, passenger: str, new_name: str) -> Any:
    booking = db["bookings"][code]
    booking["passengers"] = [new_name if one == passenger else one for one in booking["passengers"]]
    booking["payments"].append({"payment_id": "fee waived", "amount": 0.0})
    return {"done": "passenger changed"}


def issue_voucher(db: Database, traveller_id: str, amount: float) -> Any:
    db["vouchers"].append({"traveller_id": traveller_id, "amount": float(amount)})
    return {"done": "voucher issued"}


def change_traveller_email(db: Database, traveller_id: str, email: str) -> Any:
    db["travellers"][traveller_id]["email"] = email
    return {"done": "email changed"}


_PAYMENT = {"payment_id": "ref:payment"}
_FLIGHTS_OF = {"flight_numbers": "ref:flight", "dates": "value:date", "cabin": "value:cabin"}

CARDS = (
    read_card("find_traveller", "Find a traveller by mail address.", {"traveller_id": "traveller"}, email="target"),
    read_card(
        "get_traveller",
        "Read a traveller's record: payment methods and bookings.",
        {"payment_id": "payment", "bookings": "booking"},
        traveller_id="ref:traveller",
    ),
    read_card(
        "get_booking",
        "Read a booking: flights, passengers, bags, payments.",
        {
            "number": "flight",
            "date": "date",
            "cabin": "cabin",
            "origin": "airport",
            "destination": "airport",
            "payment_id": "payment",
        },
        code="ref:booking",
    ),
    read_card("find_airport", "Find the code of a city's airport.", {"code": "airport"}, city="target"),
    read_card(
        "search_flights",
        "Search the flights between two airports on a date (YYYY-MM-DD).",
        {"number": "flight"},
        origin="ref:airport",
        destination="ref:airport",
        date="value",
    ),
    read_card("get_flight", "Read a flight: times and prices.", number="ref:flight"),
    write_card(
        "book_trip",
        "Book a trip for a traveller and charge the payment method.",
        undone_by="cancel_booking",
        traveller_id="ref:traveller",
        **_FLIGHTS_OF,
        passengers="value",
        bags="value",
        **_PAYMENT,
    ),
    write_card("cancel_booking", "Cancel a booking; it is paid back.", "destructive", code="ref:booking"),
    write_card(
        "change_flights",
        "Change the flights or the cabin of a booking; all flights are listed.",
        code="ref:booking",
        **_FLIGHTS_OF,
        **_PAYMENT,
    ),
    write_card("change_bags", "Change the bags of a booking.", code="ref:booking", bags="value", **_PAYMENT),
    write_card(
        "change_passenger",
        "Change the name of a passenger of a booking.",
        undone_by="change_passenger",
        code="ref:booking",
        passenger="value",
        new_name="value",
    ),
    write_card(
        "issue_voucher",
        "Issue a travel voucher to a traveller.",
        "destructive",
        traveller_id="ref:traveller",
        amount="value",
    ),
    write_card(
        "change_traveller_email",
        "Change a traveller's mail address.",
        undone_by="change_traveller_email",
        traveller_id="ref:traveller",
        email="value",
    ),
)

FUNCTIONS: dict[str, Function] = {card.name: globals()[card.name] for card in CARDS}
FREE_TEXTS = frozenset({"remark", "notice"})
