"""
Text: what each part of Python is about
=======================================

The documents are the descriptions of some hundred functions and methods of Python's own library.
They are clustered by their words. Each cluster is named by its most distinctive ones.
"""

import datetime
import decimal
import email.message
import inspect
import logging
import pathlib
import statistics
import tarfile
import threading
import unittest

import matplotlib.pyplot as plt
from sklearn.feature_extraction.text import TfidfVectorizer

from symnmf import SymNMF

modules = (datetime, decimal, email.message, logging, pathlib, statistics, tarfile, threading)
texts = []
for module in (*modules, unittest):
    for _, thing in inspect.getmembers(module, lambda x: inspect.isclass(x) or callable(x)):
        parts = vars(thing).values() if inspect.isclass(thing) else [thing]
        texts += [inspect.getdoc(part) or "" for part in parts if callable(part)]
texts = sorted({text for text in texts if len(text.split()) > 8})

vectorizer = TfidfVectorizer(stop_words="english", min_df=3, token_pattern=r"[A-Za-z]{3,}")
counts = vectorizer.fit_transform(texts)
model = SymNMF(n_clusters=6, affinity="cosine", random_state=0).fit(counts)

telling = model.top_features(counts, vectorizer.get_feature_names_out(), 7)
figure, axes = plt.subplots(1, 6, figsize=(12, 2.8), layout="constrained")
for number, (ax, top) in enumerate(zip(axes, telling, strict=True)):
    ax.barh([word for word, _ in top][::-1], [score for _, score in top][::-1], color="tab:blue")
    ax.set_title(f"cluster {number}", fontsize=10)
    ax.set_xticks([])
    ax.spines[["top", "right", "bottom"]].set_visible(False)

# %%
# A text without any known word belongs nowhere. Its label is -1.

print(f"{len(texts)} texts, {(model.labels_ == -1).sum()} of them in no cluster")
print("sizes", *model.quality_.sizes)
