// SPDX-License-Identifier: Apache-2.0
package dev.gantry.langchain4j;

import dev.gantry.core.MisuseException;
import dev.gantry.models.HubModel;
import dev.gantry.models.TextEmbedder;
import dev.langchain4j.data.embedding.Embedding;
import dev.langchain4j.model.embedding.EmbeddingModel;
import dev.langchain4j.model.embedding.request.EmbeddingInput;
import dev.langchain4j.model.embedding.request.EmbeddingInputType;
import dev.langchain4j.model.embedding.request.EmbeddingParameter;
import dev.langchain4j.model.embedding.request.EmbeddingRequest;
import dev.langchain4j.model.embedding.request.EmbeddingRequestParameters;
import dev.langchain4j.model.embedding.response.EmbeddingResponse;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// A [TextEmbedder] as LangChain4j's `EmbeddingModel`. Thread-safe until it is closed, like the
/// embedder.
///
/// All texts of a request are embedded in one call. A request of type `QUERY` uses the folder's
/// prompt `query`. A request of type `DOCUMENT` uses the first of the prompts `document`,
/// `passage` and `corpus` that the folder has. If the folder has no such prompt, or the request no
/// type, the embedder's own prompt is used.
public final class GantryEmbeddingModel implements EmbeddingModel, AutoCloseable {
  private static final List<String> OF_DOCUMENTS = List.of("document", "passage", "corpus");

  private final TextEmbedder embedder;
  private final int dimension;

  private GantryEmbeddingModel(TextEmbedder embedder) {
    this.embedder = embedder;
    this.dimension = embedder.dimension();
  }

  /// Loads a folder of the hub with the defaults of [dev.gantry.models.TextOptions].
  ///
  /// @throws dev.gantry.core.GantryException as [HubModel#embedder()]
  public static GantryEmbeddingModel of(Path folder) {
    TextEmbedder embedder = HubModel.of(folder).embedder();
    try {
      return of(embedder);
    } catch (RuntimeException | Error e) {
      embedder.close();
      throw e;
    }
  }

  /// @param embedder the embedder; closing the model closes it
  public static GantryEmbeddingModel of(TextEmbedder embedder) {
    return new GantryEmbeddingModel(MisuseException.requireGiven("embedder", embedder));
  }

  @Override
  public EmbeddingResponse doEmbed(EmbeddingRequest request) {
    List<String> texts = request.inputs().stream().map(EmbeddingInput::text).toList();
    String prompt = prompt(request.inputType());
    float[][] vectors = prompt == null ? embedder.embed(texts) : embedder.embed(texts, prompt);
    return EmbeddingResponse.builder()
        .embeddings(Arrays.stream(vectors).map(Embedding::from).toList())
        .build();
  }

  private @Nullable String prompt(@Nullable EmbeddingInputType type) {
    List<String> names =
        switch (type) {
          case null -> List.of();
          case QUERY -> List.of("query");
          case DOCUMENT -> OF_DOCUMENTS;
        };
    return names.stream().filter(embedder.prompts()::containsKey).findFirst().orElse(null);
  }

  @Override
  public Set<EmbeddingParameter<?>> supportedParameters() {
    return Set.of(EmbeddingRequestParameters.INPUT_TYPE);
  }

  @Override
  public int dimension() {
    return dimension;
  }

  /// Closes the embedder, which frees its memory.
  @Override
  public void close() {
    embedder.close();
  }
}
