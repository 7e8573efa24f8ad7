package lucene;

import java.io.IOException;
import java.util.Random;
import org.apache.lucene.analysis.en.EnglishAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.StringField;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.TopDocs;
import org.apache.lucene.store.ByteBuffersDirectory;
import org.apache.lucene.util.QueryBuilder;
import zoo.Meter;
import zoo.Zoo;

/** Lucene, which indexes batches of documents of English words, and searches. */
public class Index {
    private static final int DOCUMENTS = 100;
    private static final int WORDS = 300;
    private static final int VOCABULARY = 5000;
    private static final int QUERIES = 200;
    private static final String[] STEMS = {"relat", "nation", "connect", "walk", "happi", "run", "generali", "oper", "form", "index"};
    private static final String[] ENDINGS = {"", "s", "ed", "ing", "ational", "fulness", "iveness", "ization", "ly", "ement"};

    private final String[] vocabulary = new String[VOCABULARY];
    private final String[] texts = new String[DOCUMENTS];
    private final EnglishAnalyzer analyzer = new EnglishAnalyzer();

    public static void main(String[] args) throws Exception {
        Index index = new Index();
        Meter indexing = new Meter("batch");
        Meter searching = new Meter("search");
        ByteBuffersDirectory directory = new ByteBuffersDirectory();
        index.batch(directory);
        try (DirectoryReader reader = DirectoryReader.open(directory)) {
            IndexSearcher searcher = new IndexSearcher(reader);
            long expected = index.search(searcher);
            Zoo.check(expected > 0, "nothing is found");
            Zoo.ready();
            while (true) {
                int indexed = indexing.time(() -> index.batch(new ByteBuffersDirectory()));
                Zoo.check(indexed == DOCUMENTS, indexed + " documents instead of " + DOCUMENTS);
                Zoo.check(searching.time(() -> index.search(searcher)) == expected, "another number is found");
            }
        }
    }

    Index() {
        Random random = new Random(7);
        for (int i = 0; i < VOCABULARY; i++) {
            String letters = Integer.toString(i, 26).replace('0', 'q').replace('1', 'w').replaceAll("[2-9]", "e");
            vocabulary[i] = letters + STEMS[random.nextInt(STEMS.length)] + ENDINGS[random.nextInt(ENDINGS.length)];
        }
        for (int i = 0; i < DOCUMENTS; i++) {
            StringBuilder text = new StringBuilder();
            for (int word = 0; word < WORDS; word++) {
                // Few words are frequent, most are rare.
                double rank = random.nextDouble();
                text.append(vocabulary[(int) (rank * rank * rank * VOCABULARY)]).append(word % 12 == 11 ? ". The " : " ");
            }
            texts[i] = text.toString();
        }
    }

    /** Indexes all documents; how many there are then. */
    int batch(ByteBuffersDirectory directory) throws IOException {
        try (IndexWriter writer = new IndexWriter(directory, new IndexWriterConfig(analyzer))) {
            for (int i = 0; i < DOCUMENTS; i++) {
                Document document = new Document();
                document.add(new StringField("id", Integer.toString(i), Field.Store.YES));
                document.add(new TextField("text", texts[i], Field.Store.NO));
                writer.addDocument(document);
            }
            writer.commit();
            return writer.getDocStats().numDocs;
        }
    }

    /** Searches for some words at a time; how many documents are found altogether. */
    long search(IndexSearcher searcher) throws IOException {
        QueryBuilder parser = new QueryBuilder(analyzer);
        long found = 0;
        for (int i = 0; i < QUERIES; i++) {
            Query query = parser.createBooleanQuery("text", vocabulary[i] + " " + vocabulary[QUERIES - i] + " walking");
            TopDocs top = searcher.search(query, 10);
            found += top.totalHits.value;
        }
        return found;
    }
}
