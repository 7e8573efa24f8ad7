package shop;

/** What has a price. */
final class PriceKey {
    private final String article;
    private final String currency;

    PriceKey(String article, String currency) {
        this.article = article;
        this.currency = currency;
    }

    String article() {
        return article;
    }

    String currency() {
        return currency;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof PriceKey
                && ((PriceKey) other).article.equals(article)
                && ((PriceKey) other).currency.equals(currency);
    }
}
