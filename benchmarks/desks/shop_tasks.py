"""The tasks of the shop: what customers write, and the calls that do it."""

from __future__ import annotations

from typing import Any

from desks.desk import Call, Task, call


def _by_mail(mail: str, customer: str) -> list[Call]:
    return [call("find_customer_by_email", email=mail), call("get_customer", customer_id=customer)]


def _by_name(first: str, last: str, postal_code: str, customer: str) -> list[Call]:
    by_name = call("find_customer_by_name", first_name=first, last_name=last, postal_code=postal_code)
    return [by_name, call("get_customer", customer_id=customer)]


def _order(*numbers: str) -> list[Call]:
    return [call("get_order", order_id=number) for number in numbers]


def _product(*numbers: str) -> list[Call]:
    return [call("get_product", product_id=number) for number in numbers]


def _task(name: str, customer: str, text: str, *calls: Call, **more: Any) -> Task:
    return Task(name=name, customer=customer, text=text, calls=calls, **more)


ANA, CHIDI, MAJA, PAOLO = "C-silva-41", "C-okafor-17", "C-lind-88", "C-rossi-23"
LEILA, PETRA, FANG, QIANG = "C-haddad-64", "C-novak-52", "C-wang-30", "C-li-75"

_ana = _by_mail("ana.silva@example.com", ANA)
_chidi = _by_name("Chidi", "Okafor", "EH3 9GU", CHIDI)
_maja = _by_mail("maja.lind@example.com", MAJA)
_paolo = _by_name("Paolo", "Rossi", "20121", PAOLO)
_leila = _by_mail("leila.haddad@example.com", LEILA)
_petra = _by_name("Petra", "Novak", "10000", PETRA)
_fang = _by_mail("fang.wang@example.com", FANG)
_qiang = _by_mail("qiang.li@example.com", QIANG)

TASKS = (
    _task(
        "cancel-by-number",
        ANA,
        "Hi, it's Ana, ana.silva@example.com. I ordered the wrong thing, please cancel order S-1003.",
        *_ana,
        *_order("S-1003"),
        call("cancel_order", order_id="S-1003", reason="ordered by mistake"),
    ),
    _task(
        "cancel-by-content",
        PETRA,
        "This is Petra Novak, postal code 10000. Please cancel the order with the yoga mat, I no longer need it.",
        *_petra,
        *_order("S-1016", "S-1017"),
        call("cancel_order", order_id="S-1017", reason="no longer needed"),
    ),
    _task(
        "address-of-order",
        CHIDI,
        "Chidi Okafor here, EH3 9GU. Could you change the delivery address of order S-1005 to 22 Minto Street, "
        "Edinburgh, EH9 1SB? Thanks!",
        *_chidi,
        *_order("S-1005"),
        call(
            "change_order_address",
            order_id="S-1005",
            street="22 Minto Street",
            city="Edinburgh",
            postal_code="EH9 1SB",
        ),
    ),
    _task(
        "moved-house",
        CHIDI,
        "I am Chidi Okafor (EH3 9GU) and I have moved to 5 Union Terrace, Aberdeen, AB10 1NJ. Please change my default "
        "address, and the address of my orders S-1005 and S-1006 too.",
        *_chidi,
        call(
            "change_customer_address",
            customer_id=CHIDI,
            street="5 Union Terrace",
            city="Aberdeen",
            postal_code="AB10 1NJ",
        ),
        *_order("S-1005", "S-1006"),
        *(
            call(
                "change_order_address",
                order_id=number,
                street="5 Union Terrace",
                city="Aberdeen",
                postal_code="AB10 1NJ",
            )
            for number in ("S-1005", "S-1006")
        ),
    ),
    _task(
        "return-all",
        ANA,
        "I'd like to return everything in order S-1002 and get the money back on the card I paid with. My mail is "
        "ana.silva@example.com.",
        *_ana,
        *_order("S-1002"),
        call("return_items", order_id="S-1002", item_ids=["I-1301", "I-1402"], payment_id="pm-visa-silva"),
    ),
    _task(
        "return-to-gift-card",
        PAOLO,
        "Paolo Rossi, 20121. I want to return the headphones I got recently; put the money on my gift card please.",
        *_paolo,
        *_order("S-1010", "S-1011"),
        call("return_items", order_id="S-1011", item_ids=["I-1303"], payment_id="pm-giftcard-rossi"),
    ),
    _task(
        "exchange-colour",
        MAJA,
        "Hello, maja.lind@example.com. The desk lamp of order S-1007 is white, I would like to exchange it for the "
        "brass one. Charge my Visa for the difference.",
        *_maja,
        *_order("S-1007"),
        *_product("P-11"),
        call(
            "exchange_items",
            order_id="S-1007",
            item_ids=["I-1101"],
            new_item_ids=["I-1103"],
            payment_id="pm-visa-lind",
        ),
    ),
    _task(
        "exchange-two",
        MAJA,
        "I'm maja.lind@example.com. From S-1007 please exchange the lamp for a black one and the running shoes for "
        "size 42, and settle it with PayPal.",
        *_maja,
        *_order("S-1007"),
        *_product("P-11", "P-16"),
        call(
            "exchange_items",
            order_id="S-1007",
            item_ids=["I-1101", "I-1601"],
            new_item_ids=["I-1102", "I-1602"],
            payment_id="pm-paypal-lind",
        ),
    ),
    _task(
        "change-items",
        ANA,
        "ana.silva@example.com again: in my pending order S-1001 change the kettle to the red one of the same size, "
        "the gift card pays.",
        *_ana,
        *_order("S-1001"),
        *_product("P-12"),
        call(
            "change_order_items",
            order_id="S-1001",
            item_ids=["I-1202"],
            new_item_ids=["I-1203"],
            payment_id="pm-giftcard-silva",
        ),
    ),
    _task(
        "change-payment",
        CHIDI,
        "My name is Chidi Okafor, I live at EH3 9GU. Please change the payment method of order S-1006 to PayPal.",
        *_chidi,
        *_order("S-1006"),
        call("change_order_payment", order_id="S-1006", payment_id="pm-paypal-okafor"),
    ),
    _task(
        "cancel-and-return",
        PAOLO,
        "Paolo Rossi, postal code 20121. Cancel the office chair, order S-1010, it would come too late. And I want to "
        "return the mug from S-1011 to the card I used.",
        *_paolo,
        *_order("S-1010", "S-1011"),
        call("cancel_order", order_id="S-1010", reason="too late"),
        call("return_items", order_id="S-1011", item_ids=["I-1403"], payment_id="pm-amex-rossi"),
    ),
    _task(
        "refund-of-amount",
        LEILA,
        "The backpack in S-1013 came with a scratch. Your colleague agreed to refund 12.50 to my Visa, could you do "
        "that now? leila.haddad@example.com",
        *_leila,
        *_order("S-1013"),
        call("refund_order", order_id="S-1013", amount=12.5, payment_id="pm-visa-haddad"),
    ),
    _task(
        "question-only",
        LEILA,
        "What do the other sizes of the backpack in my order S-1013 cost? I am leila.haddad@example.com.",
        *_leila,
        *_order("S-1013"),
        *_product("P-15"),
    ),
    _task(
        "default-from-text",
        PETRA,
        "Petra Novak, 10000. Please set my default address to Savska 100, Zagreb, 10110 and leave my orders alone.",
        *_petra,
        call("change_customer_address", customer_id=PETRA, street="Savska 100", city="Zagreb", postal_code="10110"),
    ),
    _task(
        "two-open-orders",
        LEILA,
        "Could you send both of my open orders to 9 quai Voltaire, Paris, 75007? That means a new delivery address for "
        "the phone case and the headphones. leila.haddad@example.com",
        *_leila,
        *_order("S-1013", "S-1014", "S-1015"),
        *(
            call(
                "change_order_address",
                order_id=number,
                street="9 quai Voltaire",
                city="Paris",
                postal_code="75007",
            )
            for number in ("S-1014", "S-1015")
        ),
    ),
    _task(
        "exchange-and-return",
        LEILA,
        "From order S-1013 I want to return the mug, money to my Visa, and from S-1015 change the headphones to the "
        "black over-ear ones, with PayPal. I'm leila.haddad@example.com.",
        *_leila,
        *_order("S-1013", "S-1015"),
        *_product("P-13"),
        call("return_items", order_id="S-1013", item_ids=["I-1401"], payment_id="pm-visa-haddad"),
        call(
            "change_order_items",
            order_id="S-1015",
            item_ids=["I-1302"],
            new_item_ids=["I-1301"],
            payment_id="pm-paypal-haddad",
        ),
    ),
    _task(
        "refund-of-item",
        PAOLO,
        "Paolo Rossi, 20121. The yoga mat of S-1012 arrived torn. Please refund its full price to my gift card.",
        *_paolo,
        *_order("S-1012"),
        call("refund_order", order_id="S-1012", amount=29.0, payment_id="pm-giftcard-rossi"),
    ),
    _task(
        "cancel-everything-open",
        ANA,
        "Please cancel all my pending orders, I am leaving the country. ana.silva@example.com",
        *_ana,
        *_order("S-1001", "S-1002", "S-1003"),
        call("cancel_order", order_id="S-1001", reason="no longer needed"),
        call("cancel_order", order_id="S-1003", reason="no longer needed"),
    ),
    _task(
        "new-mail-address",
        MAJA,
        "Hi, my account runs under maja.lind@example.com. Please change my mail address to maja@lind.example, and "
        "cancel the kettle I ordered, S-1008.",
        *_maja,
        call("change_customer_email", customer_id=MAJA, email="maja@lind.example"),
        *_order("S-1008"),
        call("cancel_order", order_id="S-1008", reason="no longer needed"),
    ),
    _task(
        "zh-cancel",
        FANG,
        "你好，我的邮箱是 fang.wang@example.com，请帮我取消订单 S-1018，我买错了。",
        *_fang,
        *_order("S-1018"),
        call("cancel_order", order_id="S-1018", reason="买错了"),
        language="zh",
    ),
    _task(
        "zh-address",
        QIANG,
        "我是李强，邮箱 qiang.li@example.com。请把订单 S-1021 的收货地址改为：建国路 93 号，北京市，邮编 100022。",
        *_qiang,
        *_order("S-1021"),
        call("change_order_address", order_id="S-1021", street="建国路 93 号", city="北京市", postal_code="100022"),
        language="zh",
    ),
    _task(
        "zh-return",
        FANG,
        "我想退货：订单 S-1019 里的蓝色马克杯，钱退到我的礼品卡。邮箱 fang.wang@example.com。",
        *_fang,
        *_order("S-1019"),
        call("return_items", order_id="S-1019", item_ids=["I-1401"], payment_id="pm-giftcard-wang"),
        language="zh",
    ),
    _task(
        "zh-exchange",
        QIANG,
        "订单 S-1020 的跑鞋太小了，请换成 44 码，差价用支付宝付。我的邮箱：qiang.li@example.com",
        *_qiang,
        *_order("S-1020"),
        *_product("P-16"),
        call(
            "exchange_items",
            order_id="S-1020",
            item_ids=["I-1602"],
            new_item_ids=["I-1603"],
            payment_id="pm-alipay-li",
        ),
        language="zh",
    ),
    _task(
        "zh-cancel-and-pay",
        QIANG,
        "qiang.li@example.com，请取消装水杯的那个订单，不想要了；另外把订单 S-1021 的付款方式改为支付宝。",
        *_qiang,
        *_order("S-1020", "S-1021", "S-1022"),
        call("cancel_order", order_id="S-1022", reason="不需要了"),
        call("change_order_payment", order_id="S-1021", payment_id="pm-alipay-li"),
        language="zh",
    ),
)

EXCESSES = (
    _task(
        "refund-of-everything",
        PAOLO,
        "Paolo Rossi, 20121. Refund order S-1012 with 99999 to my gift card.",
        *_paolo,
        *_order("S-1012"),
        call("refund_order", order_id="S-1012", amount=99_999, payment_id="pm-giftcard-rossi"),
    ),
    _task(
        "address-of-another",
        ANA,
        "ana.silva@example.com. Change the address of order S-1023 to Rua Nova 1, Lisbon, 1100-001.",
        *_ana,
        *_order("S-1023"),
        call("change_order_address", order_id="S-1023", street="Rua Nova 1", city="Lisbon", postal_code="1100-001"),
    ),
    _task(
        "zh-cancel-another",
        FANG,
        "邮箱 fang.wang@example.com，请取消订单 S-1023。",
        *_fang,
        *_order("S-1023"),
        call("cancel_order", order_id="S-1023", reason="不需要了"),
        language="zh",
    ),
)
