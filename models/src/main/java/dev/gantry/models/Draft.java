// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.ndarray.NDArray;
import dev.gantry.djl.ParameterNames;
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
import dev.gantry.models.internal.blocks.Description.Place;
import dev.gantry.models.internal.blocks.Description.Pool;
import dev.gantry.models.internal.blocks.Description.Positions;
import dev.gantry.models.internal.blocks.Description.QueryNorm;
import dev.gantry.models.internal.blocks.Description.Residual;
import dev.gantry.models.internal.blocks.Description.Stem;
import dev.gantry.models.internal.blocks.Description.Tokens;
import dev.gantry.models.internal.blocks.Description.Vocabulary;
import dev.gantry.models.internal.blocks.Rotation;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.IntFunction;
import java.util.function.IntUnaryOperator;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Collects what a `config.json` says of a transformer, so that a family can be another one but for some lines. Its
/// fields begin as the most usual ones. For one thread.
final class Draft {
  final HubFolder folder;
  final HubConfig config;

  boolean causal;
  int count;
  int width;
  int hidden;
  int heads;
  int groups;
  int headSize;
  double epsilon;
  UnaryOperator<NDArray> activation = UnaryOperator.identity();

  boolean rms;
  boolean normBias = true;
  boolean plusOne;
  Place place = Place.BEFORE;
  boolean lastNorm;

  boolean attentionBias;
  boolean outputBias;
  boolean feedForwardBias;
  boolean gated;
  @Nullable Experts experts;
  IntFunction<Boolean> expertsIn = _ -> true;
  QueryNorm queryNorm = QueryNorm.NONE;
  double cap;
  boolean sinks;
  int buckets;
  @Nullable Distances distances;
  IntFunction<Double> scale = _ -> 1 / Math.sqrt(headSize);
  IntFunction<@Nullable Rotation> rotation = _ -> null;
  IntUnaryOperator window = _ -> 0;
  boolean firstNorm = true;

  double residualScale = 1;
  boolean learnedScale;
  boolean parallel;
  boolean oneNorm;

  int vocabulary;
  int embeddingWidth;
  double embeddingScale = 1;
  int types;
  int longest;
  int rows;
  int padding = -1;
  boolean embeddingNorm;
  @Nullable Embedding patches;

  /// The head: scores of the vocabulary, and what comes before each kind of scores.
  boolean usuallyTied = true;

  String headTensor = "lm_head.weight";
  boolean headBias;
  double scoreScale = 1;
  double scoreCap;
  @Nullable Stem transform;
  @Nullable Stem pooler;

  /// A text's state, where a model without a head gives it besides all states.
  @Nullable Output summary;

  @Nullable Stem sequence;
  @Nullable Stem each;
  Pool pool = Pool.FIRST;
  boolean labelBias = true;

  Draft(HubFolder folder) {
    this.folder = folder;
    config = folder.config();
  }

  Description description(List<Output> outputs) {
    Embedding embedding =
        patches != null
            ? patches
            : new Tokens(
                vocabulary,
                embeddingWidth == 0 ? width : embeddingWidth,
                embeddingScale,
                new Positions(longest, rows, padding),
                types,
                embeddingNorm);
    List<Layer> layers = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      layers.add(
          new Layer(
              rotation.apply(i),
              window.applyAsInt(i),
              scale.apply(i),
              firstNorm || i > 0,
              experts != null && expertsIn.apply(i)));
    }
    return new Description(
        causal,
        width,
        embedding,
        new Norms(place, rms, epsilon, normBias, plusOne),
        lastNorm,
        new Attending(
            heads,
            groups,
            headSize,
            attentionBias,
            outputBias,
            queryNorm,
            cap,
            sinks,
            buckets,
            distances),
        new FeedForward(hidden, gated, activation, feedForwardBias, experts),
        new Residual(residualScale, learnedScale, parallel, oneNorm),
        List.copyOf(layers),
        outputs);
  }

  /// The names of a description's tensors.
  ///
  /// @param section of the list of names
  ParameterNames names(String section, Description description) {
    int queries = heads * headSize;
    int keys = groups * headSize;
    Map<String, String> words =
        Map.of(
            "<heads>", "" + heads,
            "<groups>", "" + groups,
            "<size>", "" + headSize,
            "<q>", "" + queries,
            "<qk>", "" + (queries + keys),
            "<qkv>", "" + (queries + 2 * keys));
    HubNames.Head head =
        description.outputs().stream()
            .map(Output::scores)
            .filter(Vocabulary.class::isInstance)
            .map(scores -> isTied() ? HubNames.Head.TIED : HubNames.Head.OWN)
            .findFirst()
            .orElse(HubNames.Head.NONE);
    return HubNames.of(section, words, head);
  }

  /// Whether the embedding's table gives the scores of tokens.
  boolean isTied() {
    return folder.isTied(usuallyTied, headTensor);
  }

  Output states() {
    return new Output(List.of("last_hidden_state"), Pool.ALL, -1, null, null);
  }

  Output pooled() {
    return new Output(List.of("pooler_output"), Pool.FIRST, -1, pooler, null);
  }

  Output scores(String name) {
    return new Output(
        List.of(name),
        Pool.ALL,
        -1,
        transform,
        new Vocabulary(isTied(), headBias, scoreScale, scoreCap));
  }

  /// What a text or an image is in the space that another model of the same training shares.
  Output projected(String name, int token, int size) {
    return new Output(
        List.of(name), pool, token, null, new Labels("projection", size, false, false));
  }

  /// One score of each label for a text or an image.
  Output labels(int labels) {
    return labelled("logits", sequence, new Labels("labels", labels, labelBias, false));
  }

  Output labelled(String name, @Nullable Stem stem, Labels labels) {
    int token = pool == Pool.LAST ? config.id("pad_token_id", -1, vocabulary) : -1;
    return new Output(List.of(name), pool, token, stem, labels);
  }

  /// Scores of labels for each token.
  Output eachToken(List<String> names, Labels labels) {
    return new Output(names, Pool.ALL, -1, each, labels);
  }

  /// Whether the second sentence follows the first.
  Output relation(String name) {
    return labelled(name, pooler, new Labels("relation", 2, true, false));
  }

  /// Whether each token was replaced by another model, as ELECTRA tells.
  Output replaced() {
    Stem stem = new Stem("discriminator", width, true, activation, false);
    return new Output(List.of("logits"), Pool.ALL, -1, stem, new Labels("replaced", 1, true, true));
  }

  /// The rotary embedding, the same in all layers.
  void rotate(Rotation same) {
    rotation = _ -> same;
  }

  /// The numbers of layers by which some differ.
  List<Integer> places() {
    return IntStream.range(0, count).boxed().toList();
  }
}
