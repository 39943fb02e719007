"""From a shop to churn: who orders in the next 30 days? python examples/churn.py"""

import sqlite3
import tempfile

import numpy as np
import pandas as pd

from vrgcn import Graph, train

# Some customers order every two weeks until they leave; others order now and then.
rng = np.random.default_rng(0)
days = pd.Timestamp("2024-01-01") + pd.to_timedelta(range(360), unit="D")
leaves = rng.integers(60, 700, 200)  # the day on which a customer leaves
rate = rng.choice([1 / 12, 1 / 45], 200)
customer, day = np.nonzero(
    (rng.random((200, 360)) < rate[:, None]) & (np.arange(360) < leaves[:, None])
)
shop = sqlite3.connect(":memory:")
pd.DataFrame({"id": range(200), "born": rng.integers(1950, 2005, 200)}).to_sql(
    "customers", shop, index=False
)
pd.DataFrame(
    {"customer": customer, "date": days[day], "amount": rng.gamma(2, 20, len(day))}
).to_sql("orders", shop, index=False)

# A question for each customer on the first day of each month: the target is known 30 days later.
customers = pd.read_sql("SELECT * FROM customers", shop)
orders = pd.read_sql("SELECT * FROM orders", shop, parse_dates=["date"])
asked = pd.DataFrame(
    [
        (who, at)
        for at in pd.date_range("2024-03-01", "2024-11-01", freq="MS")
        for who in range(200)
    ],
    columns=["customer", "date"],
)
later = asked.reset_index().merge(orders, on="customer", suffixes=("", "_ordered"))
wait = later["date_ordered"] - later["date"]
soon = later.loc[(wait > pd.Timedelta(0)) & (wait <= pd.Timedelta("30D")), "index"]
asked["orders"] = np.where(asked.index.isin(soon), "yes", "no")

graph = Graph.from_tables(
    nodes={"customer": customers, "order": orders},
    edges={("order", "by", "customer"): orders},
    dated={"order": "date"},
    rows=("customer", asked, "date"),
    label="orders",
    known_after="30d",
    train_until="2024-08-15",
    val_until="2024-09-15",
)
with tempfile.TemporaryDirectory() as folder:
    run = train(graph, out=f"{folder}/run", epochs=15, metric="roc-auc")
    print(f"ROC AUC of the last two months: {run.result['test']:.3f}")
    table = run.predictions().to_pandas()
print(table.tail(3))
