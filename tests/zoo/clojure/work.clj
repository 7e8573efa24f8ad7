(ns work
  "Orders as maps, and what Clojure's sequences make of them."
  (:require [clojure.string :as string]))

(defn order [n]
  {:id n, :customer (str "customer" (mod n 40)), :amount (inc (mod (* n 7919) 97)), :note (str "note " n " of " (mod n 11))})

(def orders (mapv order (range 3000)))

(defn by-customer [orders]
  (reduce (fn [totals {:keys [customer amount]}] (update totals customer (fnil + 0) amount)) {} orders))

(defn word-counts [orders]
  (->> orders (mapcat #(string/split (:note %) #" ")) frequencies (sort-by (juxt (comp - val) key)) (take 20) vec))

(defn large [orders]
  (->> orders (filter #(> (:amount %) 90)) (map #(assoc % :gift true)) (group-by :customer) (into (sorted-map))))

(defn step []
  (let [totals (by-customer orders)
        words (word-counts orders)
        gifts (large orders)]
    (str (reduce + (vals totals)) " " (first words) " " (count gifts))))
