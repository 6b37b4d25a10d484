"""Well-known cities: English names, Chinese names, IANA zone. Plain data."""

from __future__ import annotations

from typing import NamedTuple

_TABLE = """
Asia/Shanghai: Shanghai 上海; Beijing,Peking 北京; Guangzhou 广州; Shenzhen 深圳; Hangzhou 杭州; Nanjing 南京; \
Chengdu 成都; \
Chongqing 重庆; Wuhan 武汉; Xi'an,Xian 西安; Tianjin 天津; Suzhou 苏州; Qingdao 青岛; Xiamen 厦门; Dalian 大连; \
Changsha 长沙; \
Zhengzhou 郑州; Jinan 济南; Harbin 哈尔滨; Shenyang 沈阳; Kunming 昆明; Fuzhou 福州; Hefei 合肥; Ningbo 宁波; \
Sanya 三亚; \
Guiyang 贵阳; Nanning 南宁; Lanzhou 兰州; Taiyuan 太原; Changchun 长春; Wuxi 无锡; Haikou 海口; Lhasa 拉萨; China 中国
Asia/Urumqi: Urumqi 乌鲁木齐
Asia/Hong_Kong: Hong_Kong 香港
Asia/Macau: Macau,Macao 澳门
Asia/Taipei: Taipei 台北; Kaohsiung 高雄
Asia/Tokyo: Tokyo 东京; Osaka 大阪; Kyoto 京都; Sapporo 札幌; Yokohama 横滨; Nagoya 名古屋; Fukuoka 福冈; Japan 日本
Asia/Seoul: Seoul 首尔; Busan 釜山
Asia/Singapore: Singapore 新加坡
Asia/Kuala_Lumpur: Kuala_Lumpur 吉隆坡
Asia/Bangkok: Bangkok 曼谷
Asia/Jakarta: Jakarta 雅加达
Asia/Manila: Manila 马尼拉
Asia/Ho_Chi_Minh: Ho_Chi_Minh_City,Saigon 胡志明市; Hanoi 河内
Asia/Kolkata: Mumbai,Bombay 孟买; Delhi,New_Delhi 新德里,德里; Bangalore,Bengaluru 班加罗尔; Kolkata 加尔各答; \
Chennai 金奈; India 印度
Asia/Dhaka: Dhaka 达卡
Asia/Karachi: Karachi 卡拉奇
Asia/Kathmandu: Kathmandu 加德满都
Asia/Dubai: Dubai 迪拜; Abu_Dhabi 阿布扎比
Asia/Riyadh: Riyadh 利雅得
Asia/Tehran: Tehran 德黑兰
Asia/Jerusalem: Jerusalem 耶路撒冷; Tel_Aviv 特拉维夫
Europe/Istanbul: Istanbul 伊斯坦布尔
Europe/Moscow: Moscow 莫斯科; Saint_Petersburg,St_Petersburg 圣彼得堡
Europe/London: London 伦敦; Manchester 曼彻斯特; Edinburgh 爱丁堡; Liverpool 利物浦; UK 英国
Europe/Dublin: Dublin 都柏林
Europe/Lisbon: Lisbon 里斯本
Europe/Paris: Paris 巴黎; Lyon 里昂; Marseille 马赛; France 法国
Europe/Berlin: Berlin 柏林; Munich 慕尼黑; Hamburg 汉堡; Frankfurt 法兰克福; Cologne 科隆; Germany 德国
Europe/Madrid: Madrid 马德里; Barcelona 巴塞罗那; Spain 西班牙
Europe/Rome: Rome 罗马; Milan 米兰; Venice 威尼斯; Florence 佛罗伦萨; Naples 那不勒斯; Italy 意大利
Europe/Amsterdam: Amsterdam 阿姆斯特丹; Rotterdam 鹿特丹
Europe/Brussels: Brussels 布鲁塞尔
Europe/Vienna: Vienna 维也纳
Europe/Zurich: Zurich 苏黎世; Geneva 日内瓦
Europe/Stockholm: Stockholm 斯德哥尔摩
Europe/Oslo: Oslo 奥斯陆
Europe/Copenhagen: Copenhagen 哥本哈根
Europe/Helsinki: Helsinki 赫尔辛基
Europe/Warsaw: Warsaw 华沙
Europe/Prague: Prague 布拉格
Europe/Budapest: Budapest 布达佩斯
Europe/Athens: Athens 雅典
Europe/Kyiv: Kyiv,Kiev 基辅
Europe/Bucharest: Bucharest 布加勒斯特
Africa/Cairo: Cairo 开罗
Africa/Lagos: Lagos 拉各斯
Africa/Nairobi: Nairobi 内罗毕
Africa/Johannesburg: Johannesburg 约翰内斯堡; Cape_Town 开普敦
Africa/Casablanca: Casablanca 卡萨布兰卡
America/New_York: New_York,New_York_City,NYC 纽约; Boston 波士顿; Washington 华盛顿; Miami 迈阿密; \
Philadelphia 费城; Atlanta 亚特兰大
America/Detroit: Detroit 底特律
America/Chicago: Chicago 芝加哥; Houston 休斯顿; Dallas 达拉斯; Austin 奥斯汀
America/Denver: Denver 丹佛
America/Phoenix: Phoenix 凤凰城
America/Los_Angeles: Los_Angeles 洛杉矶; San_Francisco 旧金山; Seattle 西雅图; San_Diego 圣迭戈; \
Las_Vegas 拉斯维加斯; Portland 波特兰; \
San_Jose 圣何塞; Silicon_Valley 硅谷
Pacific/Honolulu: Honolulu 火奴鲁鲁,檀香山
America/Toronto: Toronto 多伦多; Ottawa 渥太华; Montreal 蒙特利尔
America/Vancouver: Vancouver 温哥华
America/Mexico_City: Mexico_City 墨西哥城
America/Sao_Paulo: Sao_Paulo,São_Paulo 圣保罗; Rio_de_Janeiro 里约热内卢
America/Argentina/Buenos_Aires: Buenos_Aires 布宜诺斯艾利斯
America/Santiago: Santiago 圣地亚哥
America/Bogota: Bogota,Bogotá 波哥大
America/Lima: Lima 利马
Australia/Sydney: Sydney 悉尼; Canberra 堪培拉
Australia/Melbourne: Melbourne 墨尔本
Australia/Brisbane: Brisbane 布里斯班
Australia/Perth: Perth 珀斯
Pacific/Auckland: Auckland 奥克兰; Wellington 惠灵顿
"""

_REGIONS = "Africa America Antarctica Arctic Asia Atlantic Australia Europe Indian Pacific Etc US"
REGIONS = tuple(_REGIONS.split())
"""The first parts of IANA zone names."""


class Place(NamedTuple):
    """A city as the table knows it."""

    name: str
    zone: str


PLACES: dict[str, Place] = {}
"""By each name, English names in lower case."""

for _line in _TABLE.replace("\\\n", " ").strip().splitlines():
    _zone, _, _cities = _line.partition(":")
    for _city in _cities.split(";"):
        _english, _chinese = _city.split()
        _place = Place(_english.split(",")[0].replace("_", " "), _zone)
        for _name in (*_english.replace("_", " ").lower().split(","), *_chinese.split(",")):
            PLACES[_name] = _place
