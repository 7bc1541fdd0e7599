// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import dev.gantry.djl.ParameterNames;
import dev.gantry.models.internal.blocks.ConvNextBlock;
import dev.gantry.models.internal.blocks.Description;
import dev.gantry.models.internal.blocks.Description.Attending;
import dev.gantry.models.internal.blocks.Description.Embedding;
import dev.gantry.models.internal.blocks.Description.Labels;
import dev.gantry.models.internal.blocks.Description.Layer;
import dev.gantry.models.internal.blocks.Description.Output;
import dev.gantry.models.internal.blocks.Description.Patches;
import dev.gantry.models.internal.blocks.Description.Pool;
import dev.gantry.models.internal.blocks.Description.Positions;
import dev.gantry.models.internal.blocks.Description.Scores;
import dev.gantry.models.internal.blocks.Description.Tokens;
import dev.gantry.models.internal.blocks.Description.Vocabulary;
import dev.gantry.models.internal.blocks.Design;
import dev.gantry.models.internal.blocks.ResnetBlock;
import dev.gantry.models.internal.blocks.Rotation;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Derives the design of a model from the facts that its family's section of `families.txt` finds
/// in a `config.json`. Not thread-safe.
final class Draft {
  private static final String SLIDING = "sliding_attention";

  private final HubFolder folder;
  private final HubConfig config;
  private final Facts facts;
  private final Rotations rotations;
  private @Nullable Set<String> tensors;

  Draft(HubFolder folder, Facts facts) {
    this.folder = folder;
    this.config = folder.config();
    this.facts = facts;
    rotations = new Rotations(config, facts, folder.stretches());
  }

  /// Returns the outputs of one of the family's classes.
  ///
  /// @param end the suffix of the class's name
  List<Output> outputs(String end) {
    return Facts.lines(facts.text("classes"))
        .filter(line -> line.split(" ", -1)[1].equals(end))
        .filter(line -> line.startsWith("output ") || hasPooler())
        .map(line -> output(facts.filled(line).split(" ", -1)))
        .toList();
  }

  /// @param word the names of the output, the states that it takes, the dense layer before the
  ///     scores, and the kind of scores
  private Output output(String... word) {
    Pool pool = Pool.valueOf(word[3]);
    int token =
        switch (pool) {
          case LAST -> config.whole("pad_token_id", -1, 0, facts.whole("embedding.vocabulary"));
          case END -> config.whole("eos_token_id", 49_407, 0, Facts.MAX_TOKENS);
          case ALL, UNNORMED, FIRST, FINAL, MEAN, FIRST_AND_MEAN, PROBE -> -1;
        };
    boolean stem = word.length > 4 && !word[4].equals("-");
    return new Output(
        List.of(word[2].split(",", -1)),
        pool,
        token,
        stem ? facts.stem(word[4]) : null,
        word.length > 5 ? scores(word) : null);
  }

  private Scores scores(String... word) {
    return word[5].equals("vocabulary")
        ? facts.make(Vocabulary.class, "head.", Map.of("tied", isTied()))
        : new Labels(
            word[5], Integer.parseInt(word[6]), Boolean.parseBoolean(word[7]), word.length > 8);
  }

  /// Whether the embedding's table also gives the scores of tokens. This is so if the
  /// configuration says so and the files have no separate weights for the scores. Separate weights
  /// take precedence, as in the library that writes the files.
  private boolean isTied() {
    return config.flag("tie_word_embeddings", facts.is("tied"))
        && !tensors().contains(facts.text("headTensor"));
  }

  /// Whether a model without a head has a pooler. The names of its tensors tell this; its
  /// configuration does not.
  private boolean hasPooler() {
    return tensors().isEmpty()
        || tensors().stream().anyMatch(name -> name.endsWith("pooler.dense.weight"));
  }

  /// Opens the files at the first call only.
  private Set<String> tensors() {
    if (tensors == null) {
      tensors = folder.tensors();
    }
    return tensors;
  }

  /// Returns the design of the block that computes the outputs.
  ///
  /// @param labels how many classes there are
  Design design(List<Output> outputs, int labels) {
    return switch (facts.text("block")) {
      case "convnext" -> {
        requireStages();
        if (facts.whole("stages") != facts.list("filters").size()) {
          throw config.refuse("hidden_sizes", "it must have as many numbers as num_stages says");
        }
        yield facts.make(ConvNextBlock.Config.class, "", Map.of("labels", labels));
      }
      case "resnet" -> {
        requireStages();
        if (facts.is("bottleneck")
            && facts.list("filters").stream().anyMatch(size -> size % 4 != 0)) {
          throw config.refuse("hidden_sizes", "a bottleneck's sizes must be multiples of 4");
        }
        yield facts.make(ResnetBlock.Config.class, "", Map.of("labels", labels));
      }
      default -> description(outputs);
    };
  }

  private void requireStages() {
    int stages = facts.list("filters").size();
    if (facts.list("depths").size() != stages) {
      throw config.refuse("depths", "it must have as many numbers as hidden_sizes, " + stages);
    }
  }

  private void requireMost(String fact, String of) {
    if (facts.whole(fact) > facts.whole(of)) {
      throw config.refuse(
          facts.key(fact), "it must be no more than " + facts.key(of) + ", " + facts.whole(of));
    }
  }

  private void requireMultiple(String fact, String of) {
    if (facts.whole(fact) % facts.whole(of) != 0) {
      String key = facts.key(fact);
      throw config.refuse(
          config.has(key) ? key : facts.key(of),
          "%s must be a multiple of %s (are %d and %d)"
              .formatted(key, facts.key(of), facts.whole(fact), facts.whole(of)));
    }
  }

  private Description description(List<Output> outputs) {
    if (facts.whole("attention.size") == 0) {
      requireMultiple("width", "attention.heads");
      facts.set("attention.size", facts.whole("width") / facts.whole("attention.heads"));
    }
    requireMultiple("attention.heads", "attention.groups");
    setDistances();
    setHidden();
    if (isMixed()) {
      requireMost("feedForward.experts.chosen", "feedForward.experts.count");
    }
    Embedding embedding;
    if (facts.text("block").equals("image")) {
      requireMost("embedding.patch", "embedding.size");
      embedding = facts.make(Patches.class, "embedding.", Map.of());
    } else {
      embedding = tokens();
    }
    return facts.make(
        Description.class,
        "",
        Map.of("embedding", embedding, "layers", layers(), "outputs", outputs));
  }

  /// Without a key in the configuration, the hidden width is a multiple of the states' width; in a
  /// gated layer it is two thirds of that.
  private void setHidden() {
    int multiple = facts.whole("width") * facts.whole("ratio");
    if (facts.whole("feedForward.hidden") == 0) {
      facts.set(
          "feedForward.hidden",
          facts.is("feedForward.gated") ? (multiple * 2 / 3 + 7) / 8 * 8 : multiple);
    }
  }

  private Tokens tokens() {
    int rows = facts.whole("embedding.positions.rows");
    int padding = facts.whole("embedding.positions.padding");
    if (padding >= 0 && padding > rows - 2) {
      throw config.refuse("pad_token_id", "it must be a whole number from 0 to " + (rows - 2));
    }
    // The position of the first token is one more than the padding token's id.
    int longest = rows > 0 ? rows - padding - 1 : rotations.longestText();
    Positions positions = new Positions(longest, facts.is("placed") ? rows : 0, padding);
    if (facts.is("rootScale")) {
      facts.set("embedding.scale", Math.sqrt(facts.whole("width")));
    }
    return facts.make(Tokens.class, "embedding.", Map.of("positions", positions));
  }

  private boolean isMixed() {
    return !facts.text("feedForward.experts").equals("none");
  }

  private List<String> parts() {
    return facts.words("distanceParts").stream().distinct().toList();
  }

  private void setDistances() {
    String of = "attention.distances";
    if (!facts.is("relative") || parts().isEmpty()) {
      facts.set(of, "none");
      return;
    }
    int buckets = Math.max(0, facts.whole(of + ".buckets"));
    if (buckets == 1) {
      throw config.refuse("position_buckets", "it must be 2 or more");
    }
    if (facts.whole(of + ".farthest") < 1) {
      facts.set(of + ".farthest", facts.whole("embedding.positions.rows"));
    }
    facts.set(of + ".buckets", buckets);
    facts.set(of + ".span", buckets == 0 ? facts.whole(of + ".farthest") : buckets);
    facts.set(of + ".keys", parts().contains("c2p"));
    facts.set(of + ".queries", parts().contains("p2c"));
  }

  private double scale(int layer) {
    double said = facts.number("scale");
    double size = facts.number("scaleSize");
    double shared = facts.whole("attention.size") * (1.0 + parts().size());
    double usual = said > 0 ? said : 1 / Math.sqrt(size > 0 ? size : shared);
    return facts.is("byLayer") ? usual / (layer + 1) : usual;
  }

  private List<Layer> layers() {
    IntPredicate turned = turned();
    List<Boolean> slides = slides(turned);
    int said = facts.is("windowed") ? facts.whole("window") : 0;
    if (said == 0 && slides.contains(true)) {
      throw config.refuse("layer_types", "a layer has a window, and none is given");
    }
    int window = facts.is("causal") || said == 0 ? said : said / 2 + 1;
    Rotation full = null;
    Rotation local = null;
    if (!facts.text("rotary").equals("none")) {
      boolean one = facts.text("rotary").equals("one");
      full = one ? rotations.one() : rotations.of("full_attention", "theta");
      local = one ? full : rotations.of(SLIDING, "localTheta");
    }
    List<Integer> plain = facts.list("plain");
    List<Layer> layers = new ArrayList<>();
    for (int i = 0; i < facts.whole("layers"); i++) {
      layers.add(
          new Layer(
              turned.test(i) ? slides.get(i) ? local : full : null,
              slides.get(i) ? window : 0,
              scale(i),
              facts.is("firstNorm") || i > 0,
              isMixed() && !plain.contains(i) && (i + 1) % facts.whole("expertStep") == 0));
    }
    return List.copyOf(layers);
  }

  private IntPredicate turned() {
    int every = facts.whole("unturnedEvery");
    List<Integer> named = facts.list("turned");
    if (!named.isEmpty()
        && (named.size() != facts.whole("layers") || !List.of(0, 1).containsAll(named))) {
      throw config.refuse("no_rope_layers", "it must be 0 or 1 for each layer");
    }
    return i -> named.isEmpty() ? every == 0 || (i + 1) % every != 0 : named.get(i) == 1;
  }

  /// Returns for each layer whether it has a window: by `layer_types` if present, else by the
  /// layer's index.
  private List<Boolean> slides(IntPredicate turned) {
    int count = facts.whole("layers");
    List<String> said = facts.is("layerTypes") ? config.words("layer_types") : List.of();
    if (!said.isEmpty()) {
      if (said.size() != count || !List.of(SLIDING, "full_attention").containsAll(said)) {
        throw config.refuse(
            "layer_types", "it must be full_attention or sliding_attention for each layer");
      }
      return said.stream().map(SLIDING::equals).toList();
    }
    int every = facts.whole("slideEvery");
    boolean some = facts.is("windowed") && (facts.whole("window") > 0 || every > 0);
    return IntStream.range(0, count)
        .mapToObj(i ->
            some
                && i >= facts.whole("slideFrom")
                && (every == 0 || (i + facts.whole("slideShift")) % every != 0)
                && !(facts.is("slideUnturned") && turned.test(i)))
        .toList();
  }

  /// The names of the tensors.
  ParameterNames names(Design design, List<Output> outputs) {
    HubNames.Head head =
        outputs.stream()
            .map(Output::scores)
            .filter(Vocabulary.class::isInstance)
            .map(_ -> isTied() ? HubNames.Head.TIED : HubNames.Head.OWN)
            .findFirst()
            .orElse(HubNames.Head.NONE);
    return HubNames.of(
        facts.text("names"),
        design instanceof Description known ? sizes(known.attention()) : Map.of(),
        head);
  }

  /// Returns the values of the placeholders in the names of a transformer's tensors.
  private static Map<String, String> sizes(Attending attention) {
    int queries = attention.heads() * attention.size();
    int keys = attention.groups() * attention.size();
    return Map.of(
        "<heads>", "" + attention.heads(),
        "<groups>", "" + attention.groups(),
        "<size>", "" + attention.size(),
        "<q>", "" + queries,
        "<qk>", "" + (queries + keys),
        "<qkv>", "" + (queries + 2 * keys));
  }
}
