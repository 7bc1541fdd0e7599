// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.ndarray.NDArray;
import dev.gantry.djl.ParameterNames;
import dev.gantry.models.internal.blocks.Activations;
import dev.gantry.models.internal.blocks.ConvNextBlock;
import dev.gantry.models.internal.blocks.Description;
import dev.gantry.models.internal.blocks.Description.Attending;
import dev.gantry.models.internal.blocks.Description.Distances;
import dev.gantry.models.internal.blocks.Description.Embedding;
import dev.gantry.models.internal.blocks.Description.Experts;
import dev.gantry.models.internal.blocks.Description.FeedForward;
import dev.gantry.models.internal.blocks.Description.Labels;
import dev.gantry.models.internal.blocks.Description.Layer;
import dev.gantry.models.internal.blocks.Description.Norms;
import dev.gantry.models.internal.blocks.Description.Output;
import dev.gantry.models.internal.blocks.Description.Patches;
import dev.gantry.models.internal.blocks.Description.Place;
import dev.gantry.models.internal.blocks.Description.Pool;
import dev.gantry.models.internal.blocks.Description.Positions;
import dev.gantry.models.internal.blocks.Description.QueryNorm;
import dev.gantry.models.internal.blocks.Description.Residual;
import dev.gantry.models.internal.blocks.Description.Scores;
import dev.gantry.models.internal.blocks.Description.Tokens;
import dev.gantry.models.internal.blocks.Description.Vocabulary;
import dev.gantry.models.internal.blocks.Design;
import dev.gantry.models.internal.blocks.ResnetBlock;
import dev.gantry.models.internal.blocks.Rotation;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.IntPredicate;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Describes a model by the facts that its family's section of `families.txt` has of a `config.json`. For one thread.
final class Draft {
  private static final String SLIDING = "sliding_attention";

  private final HubFolder folder;
  private final HubConfig config;
  private final Facts facts;

  Draft(HubFolder folder, Facts facts) {
    this.folder = folder;
    this.config = folder.config();
    this.facts = facts;
  }

  /// The outputs of one of the family's classes.
  ///
  /// @param end what the name of the class ends with
  List<Output> outputs(String end) {
    return Facts.lines(facts.text("classes"))
        .filter(line -> line.split(" ", -1)[1].equals(end))
        .filter(line -> line.startsWith("output ") || folder.hasPooler())
        .map(line -> output(facts.filled(line)))
        .toList();
  }

  /// @param word the names, which states it takes, the dense layer before the scores, and what the scores are of
  private Output output(String... word) {
    Pool pool = Pool.valueOf(word[3]);
    int token =
        switch (pool) {
          case LAST ->
              facts.is("causal") ? config.id("pad_token_id", -1, facts.whole("vocabulary")) : -1;
          case END -> config.id("eos_token_id", 49_407, Facts.MAX_TOKENS);
          case ALL, UNNORMED, FIRST, MEAN, FIRST_AND_MEAN, PROBE -> -1;
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
        ? new Vocabulary(
            isTied(),
            facts.is("headBias"),
            1 / facts.number("scoreDivisor"),
            facts.number("scoreCap"))
        : new Labels(
            word[5], Integer.parseInt(word[6]), Boolean.parseBoolean(word[7]), word.length > 8);
  }

  /// Whether the embedding's table gives the scores of tokens.
  private boolean isTied() {
    return folder.isTied(facts.is("tied"), facts.text("headTensor"));
  }

  /// Describes a model of images whose layers are convolutions.
  Design staged(int labels) {
    int stages = facts.list("filters").size();
    if (facts.list("depths").size() != stages) {
      throw config.refuse("depths", "it must have as many numbers as hidden_sizes, " + stages);
    }
    return facts.text("names").equals("resnet") ? resnet(labels) : convNext(labels);
  }

  private Design convNext(int labels) {
    if (facts.whole("stages") != facts.list("filters").size()) {
      throw config.refuse("hidden_sizes", "it must have as many numbers as num_stages says");
    }
    return new ConvNextBlock.Config(
        facts.whole("channels"),
        facts.whole("patch"),
        facts.list("filters"),
        facts.list("depths"),
        activation(),
        facts.number("epsilon"),
        facts.number("layerScale") > 0,
        labels);
  }

  private Design resnet(int labels) {
    if (facts.is("bottleneck") && facts.list("filters").stream().anyMatch(size -> size % 4 != 0)) {
      throw config.refuse("hidden_sizes", "a bottleneck's sizes must be multiples of 4");
    }
    return new ResnetBlock.Config(
        facts.whole("channels"),
        facts.whole("embedding"),
        facts.list("filters"),
        facts.list("depths"),
        facts.is("bottleneck"),
        facts.is("strideFirst"),
        facts.is("shrinkFirst"),
        activation(),
        labels);
  }

  private UnaryOperator<NDArray> activation() {
    return Activations.of(facts.text("activation"));
  }

  private int groups() {
    int groups = facts.whole("groups");
    return groups == 0 ? facts.whole("heads") : groups;
  }

  private int headSize() {
    int size = facts.whole("headSize");
    return size == 0 ? Math.max(1, facts.whole("width") / facts.whole("heads")) : size;
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

  /// Describes a transformer.
  Description description(List<Output> outputs) {
    if (facts.whole("headSize") == 0) {
      requireMultiple("width", "heads");
    }
    if (facts.whole("groups") != 0) {
      requireMultiple("heads", "groups");
    }
    Distances distances = distances();
    Experts experts = experts();
    Embedding embedding = facts.text("block").equals("image") ? patches() : tokens();
    return new Description(
        facts.is("causal"),
        facts.whole("width"),
        embedding,
        new Norms(
            facts.one(Place.class, "place"),
            facts.is("rms"),
            facts.number("epsilon"),
            facts.is("normBias"),
            facts.is("plusOne")),
        facts.is("lastNorm"),
        new Attending(
            facts.whole("heads"),
            groups(),
            headSize(),
            facts.is("attentionBias"),
            facts.is("outputBias"),
            facts.one(QueryNorm.class, "queryNorm"),
            facts.number("cap"),
            facts.is("sinks"),
            facts.whole("buckets"),
            distances),
        new FeedForward(
            hidden(), facts.is("gated"), activation(), facts.is("feedForwardBias"), experts),
        new Residual(
            facts.number("residualScale"),
            facts.is("learnedScale"),
            facts.is("parallel"),
            facts.is("oneNorm")),
        layers(experts != null),
        outputs);
  }

  /// A width that no key says is a multiple of that of the states; if gated, two thirds of that.
  private int hidden() {
    int said = facts.whole("hidden");
    int multiple = facts.whole("width") * facts.whole("ratio");
    return said > 0 ? said : facts.is("gated") ? (multiple * 2 / 3 + 7) / 8 * 8 : multiple;
  }

  private Patches patches() {
    int image = facts.whole("image");
    if (facts.whole("patch") > image) {
      throw config.refuse("patch_size", "it must be no more than image_size, " + image);
    }
    return new Patches(
        facts.whole("channels"),
        image,
        facts.is("anySize"),
        facts.whole("patch"),
        facts.whole("first"),
        facts.is("patchBias"),
        facts.is("embeddingNorm"));
  }

  private Tokens tokens() {
    int rows = facts.whole("rows");
    int padding = facts.whole("padding");
    if (padding >= 0 && padding > rows - 2) {
      throw config.refuse("pad_token_id", "it must be a whole number from 0 to " + (rows - 2));
    }
    // Positions of tokens count on from the padding token's number.
    int longest = rows > 0 ? rows - padding - 1 : longest();
    int width = facts.whole("embeddingWidth");
    return new Tokens(
        facts.whole("vocabulary"),
        width == 0 ? facts.whole("width") : width,
        facts.is("rootScale") ? Math.sqrt(facts.whole("width")) : facts.number("embeddingScale"),
        new Positions(longest, facts.is("placed") ? rows : 0, padding),
        facts.whole("types"),
        facts.is("embeddingNorm"),
        facts.is("blank"));
  }

  /// A rotary embedding that grows with texts makes longer ones possible.
  private int longest() {
    int longest = facts.whole("longest");
    return facts.text("rotary").equals("one")
            && rotations("theta").read().kind()
                instanceof Rotation.Dynamic(double factor, double all)
        ? (int) Math.min(Facts.MAX_POSITIONS, factor * all)
        : longest;
  }

  private @Nullable Experts experts() {
    int all = facts.whole("experts");
    if (all == 0) {
      return null;
    }
    int chosen = facts.whole("chosen");
    if (chosen > all) {
      throw config.refuse(
          facts.key("chosen"), "it must be no more than " + facts.key("experts") + ", " + all);
    }
    return new Experts(
        all, chosen, facts.whole("expertHidden"), facts.is("normalized"), facts.is("stacked"));
  }

  private List<String> parts() {
    return facts.words("distanceParts").stream().distinct().toList();
  }

  private @Nullable Distances distances() {
    if (!facts.is("relative") || parts().isEmpty()) {
      return null;
    }
    int said = facts.whole("distances");
    int farthest = said < 1 ? facts.whole("rows") : said;
    int buckets = Math.max(0, facts.whole("distanceBuckets"));
    if (buckets == 1) {
      throw config.refuse("position_buckets", "it must be 2 or more");
    }
    return new Distances(
        buckets == 0 ? farthest : buckets,
        buckets,
        farthest,
        facts.is("distanceNorm"),
        facts.is("sharedKeys"),
        parts().contains("c2p"),
        parts().contains("p2c"));
  }

  private double scale(int layer) {
    double said = facts.number("scale");
    double size = facts.number("scaleSize");
    double shared = headSize() * (1.0 + parts().size());
    double usual = said > 0 ? said : 1 / Math.sqrt(size > 0 ? size : shared);
    return facts.is("byLayer") ? usual / (layer + 1) : usual;
  }

  private List<Layer> layers(boolean experts) {
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
      full = facts.text("rotary").equals("one") ? rotation() : of("full_attention", "theta");
      local = facts.text("rotary").equals("one") ? full : of(SLIDING, "localTheta");
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
              experts && !plain.contains(i) && (i + 1) % facts.whole("expertStep") == 0));
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

  /// Tells for each layer whether it has a window, as `layer_types` says, or else by their place.
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

  private Rotations rotations(String theta) {
    return new Rotations(
        config,
        headSize(),
        facts.number(theta),
        facts.is("partial"),
        facts.number("share"),
        facts.whole("longest"),
        facts.is("originalBeside"));
  }

  /// The rotary embedding of layers of a kind. What old files say is for layers that see all tokens.
  private Rotation of(String kind, String theta) {
    HubConfig both = config.object("rope_parameters").orElseGet(HubConfig::empty);
    HubConfig old =
        facts.is("scalable") && !kind.equals(SLIDING)
            ? config.object("rope_scaling").orElseGet(HubConfig::empty)
            : HubConfig.empty();
    HubConfig said = both.object(kind).orElse(old);
    // The reference looks for it in another place, where it is not.
    said.must("truncate", "true");
    return rotations(theta).rotation(said);
  }

  private Rotation rotation() {
    Rotation read = rotations("theta").read();
    if (facts.is("originalBeside")
        && Rotations.originally(config).isEmpty()
        && read.kind() instanceof Rotation.Each) {
      throw config.refuse("rope_scaling", "original_max_position_embeddings must be beside it");
    }
    List<Float> by = folder.stretches();
    if (by.isEmpty()) {
      return read;
    }
    // Stretches each wave besides, as a GGUF file says.
    if (by.size() != read.size() / 2 || !(read.kind() instanceof Rotation.Linear(double factor))) {
      throw config.refuse(
          "num_attention_heads",
          "a head has " + read.size() / 2 + " waves, and factors are for " + by.size());
    }
    List<Float> factors = by.stream().map(each -> (float) (each * factor)).toList();
    return new Rotation(
        read.theta(), read.size(), 1, new Rotation.Each(factors, factors, 0, false));
  }

  /// The names of the tensors.
  ParameterNames names(List<Output> outputs) {
    HubNames.Head head =
        outputs.stream()
            .map(Output::scores)
            .filter(Vocabulary.class::isInstance)
            .map(_ -> isTied() ? HubNames.Head.TIED : HubNames.Head.OWN)
            .findFirst()
            .orElse(HubNames.Head.NONE);
    return HubNames.of(facts.text("names"), sizes(), head);
  }

  /// What words of the names of a transformer's tensors stand for.
  private Map<String, String> sizes() {
    if (facts.text("block").equals("staged")) {
      return Map.of();
    }
    int queries = facts.whole("heads") * headSize();
    int keys = groups() * headSize();
    return Map.of(
        "<heads>", "" + facts.whole("heads"),
        "<groups>", "" + groups(),
        "<size>", "" + headSize(),
        "<q>", "" + queries,
        "<qk>", "" + (queries + keys),
        "<qkv>", "" + (queries + 2 * keys));
  }
}
