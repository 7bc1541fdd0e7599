// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.Device;
import ai.djl.Model;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.LoadReport;
import dev.gantry.djl.ParameterNames;
import dev.gantry.djl.Weights;
import dev.gantry.djl.internal.ndarray.TorchArrays;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// A model of the Hugging Face hub, by its name or in a folder as the hub has it, with `config.json` and weights, or in a GGUF file. Its
/// architecture must be one that is known here; `docs/models.md` lists them.
///
/// ```java
/// HubModel hub = HubModel.of(folder);
/// try (Model model = hub.load(Device.gpu(), LoadOptions.defaults());
///     Predictor<NDList, NDList> predictor = model.newPredictor(new NoopTranslator())) {
///   …
/// }
/// ```
///
/// Immutable, thread-safe: it holds what `config.json` says, and no weights.
public final class HubModel {
  /// Describes an input of the model.
  ///
  /// @param name the hub's, such as `input_ids`
  /// @param bound values are from 0 to this, exclusive; 0 for no bound
  /// @param required whether it must be given
  public record Input(String name, DataType type, long bound, boolean required) {}

  /// Names one of the two models of a folder whose model was trained on texts and images, as CLIP was.
  public enum Tower {
    TEXT,
    IMAGE
  }

  /// The settings of blocks that were made here.
  private static final Map<Block, Object> BUILT = Collections.synchronizedMap(new WeakHashMap<>());

  private final FetchedModel files;
  private final @Nullable Tower tower;
  private final Architecture architecture;

  private HubModel(FetchedModel files, @Nullable Tower tower, Architecture architecture) {
    this.files = files;
    this.tower = tower;
    this.architecture = architecture;
  }

  /// @param tower null for the whole model
  private static HubModel of(FetchedModel fetched, @Nullable Tower tower) {
    FetchedModel files = tower == null ? fetched.transformer() : fetched;
    return new HubModel(files, tower, read(files, tower));
  }

  private static Architecture read(FetchedModel files, @Nullable Tower tower) {
    HubFolder read = HubFolder.read(files);
    return Architecture.of(tower == null ? read : read.tower(tower));
  }

  /// Reads a model of the hub by its name, such as `hf://OWNER/NAME@REVISION`, or of a local
  /// folder or GGUF file. The files that describe a model of the hub are copied to the hub's
  /// cache folder, which [#folder] returns; loads bring the model's weights from the hub, and
  /// keep them there. A GGUF file is copied first.
  ///
  /// @throws dev.gantry.core.GantryException as [#of(Path)]; also if the hub refuses, or is not reached and the cache lacks a
  ///     file
  public static HubModel of(String location) {
    return of(FetchedModel.of(MisuseException.requireGiven("location", location)), null);
  }

  /// Reads one of the two models of a location, as [#of(Path, Tower)] does of a folder.
  ///
  /// @throws dev.gantry.core.GantryException as [#of(String)]; also if the model is not two
  public static HubModel of(String location, Tower tower) {
    MisuseException.requireGiven("tower", tower);
    return of(FetchedModel.of(MisuseException.requireGiven("location", location)), tower);
  }

  /// Reads and checks `config.json`, or the notes of a GGUF file.
  ///
  /// @param folder a folder; or a GGUF file, or a folder that has one and no `config.json`. Where it has a `modules.json`,
  ///     as sentence-transformers writes it, the model is in the folder that this names first
  /// @throws dev.gantry.core.MalformedFileException if it is of an architecture that is not known, or
  ///     breaks a rule; the message names the key, its value and what would be right
  /// @throws MisuseException if it is not there, and is named as models of the hub are
  /// @throws dev.gantry.core.TransferException if it is not there or cannot be read
  public static HubModel of(Path folder) {
    return of(FetchedModel.local(MisuseException.requireGiven("folder", folder)), null);
  }

  /// Reads and checks one of the two models of a `config.json`, such as of `CLIPModel` or `SiglipModel`. CLIP's gives
  /// `text_embeds` or `image_embeds` first, SigLIP's `pooler_output` second: the vectors whose cosines say how well a
  /// text and an image match.
  ///
  /// @throws dev.gantry.core.MalformedFileException as [#of(Path)]; also if the folder's model is not two
  /// @throws dev.gantry.core.TransferException as [#of(Path)]
  public static HubModel of(Path folder, Tower tower) {
    MisuseException.requireGiven("folder", folder);
    return of(FetchedModel.local(folder), MisuseException.requireGiven("tower", tower));
  }

  /// The same model without its head, which computes the states of a text's tokens.
  ///
  /// @throws MisuseException if this is a tower, whose vectors are an output of its own
  HubModel withoutHead() {
    if (tower != null) {
      throw new MisuseException(
          "an embedder must be of a whole model (was of the tower %s, whose load() gives %s)"
              .formatted(tower, String.join(" and ", outputs())));
    }
    return new HubModel(files, null, Architecture.of(HubFolder.read(files).withoutHead()));
  }

  /// Returns the folder's `config.json`.
  HubConfig config() {
    return HubFolder.read(files).config();
  }

  /// The folder that was given.
  Path root() {
    return files.root();
  }

  /// The folder, or GGUF file, that has the model itself: `config.json`, the weights, the tokenizer.
  public Path folder() {
    return files.path();
  }

  /// The architecture's name, such as `LlamaForCausalLM`.
  public String architecture() {
    return architecture.name();
  }

  /// Makes a new block without weights.
  public Block newBlock() {
    Block block = architecture.design().newBlock();
    BUILT.put(block, architecture.design());
    return block;
  }

  /// Names the tensors that fill the block's parameters. Each parameter must have one, also where `optPartial`
  /// leaves tensors out.
  public ParameterNames names() {
    return architecture.names().complete();
  }

  /// The inputs that the block takes, in its order. Only the last ones may be left out.
  public List<Input> inputs() {
    return architecture.inputs();
  }

  /// The names of what the block returns, in its order. The arrays have these names.
  public List<String> outputs() {
    return architecture.outputs();
  }

  /// The names of the classes, by their number, such as `tabby, tabby cat`; empty if the model does not
  /// classify.
  public List<String> labels() {
    return architecture.labels();
  }

  /// The tokens that end a text, for [TextGenerator.Builder#optEnds]: `eos_token_id` of
  /// `generation_config.json`, or of `config.json` if there is no such file.
  public long[] endTokens() {
    return architecture.ends().stream().mapToLong(Integer::longValue).toArray();
  }

  /// Shapes that initialise the block, such as that of one image.
  public Shape[] inputShapes() {
    return architecture.shapes().toArray(Shape[]::new);
  }

  /// Loads the folder's weights as FLOAT32 onto DJL's default device: the first GPU, or host memory.
  ///
  /// @throws dev.gantry.core.GantryException as [#load(Device, LoadOptions)]
  public Model load() {
    return load(TorchArrays.defaultDevice(), LoadOptions.defaults());
  }

  /// Loads the folder's weights into a new block. The block is frozen: it has no gradients until you
  /// call `freezeParameters(false)`.
  ///
  /// @param options such as `optCast`; without, floating-point tensors become FLOAT32
  /// @return a model that owns the weights' memory until you close it
  /// @throws dev.gantry.core.MisuseException if the tensors do not fit the block
  /// @throws dev.gantry.core.MalformedFileException if a data file breaks a rule of its format
  /// @throws dev.gantry.core.TransferException if a file or device fails
  /// @throws dev.gantry.core.DeviceUnavailableException if DJL has no PyTorch engine, or no libtorch for it
  public Model load(Device device, LoadOptions options) {
    MisuseException.requireGiven("device", device);
    MisuseException.requireGiven("options", options);
    // Says in a line why there is no such engine.
    var _ = TorchArrays.defaultDevice();
    Model model = Model.newInstance(architecture(), device, "PyTorch");
    return Cleanup.orUndo(
        () -> {
          Block block = newBlock();
          block.freezeParameters(true);
          model.setBlock(block);
          var _ = fill(model, options);
          return model;
        },
        model::close);
  }

  /// Opens an embedder with the defaults of [TextOptions].
  public TextEmbedder embedder() {
    return embedder(TextOptions.defaults());
  }

  /// Loads the weights into a model that turns texts into vectors, as the folder says if sentence-transformers wrote
  /// it; otherwise by the mean of the states of a text's tokens.
  ///
  /// @return an embedder that owns the weights' memory until you close it
  /// @throws dev.gantry.core.GantryException as [#load(Device, LoadOptions)]; also if the folder has no
  ///     `tokenizer.json`, or a module that is not known
  public TextEmbedder embedder(TextOptions options) {
    return TextEmbedder.open(this, MisuseException.requireGiven("options", options));
  }

  /// Opens a scorer with the defaults of [TextOptions].
  public TextScorer scorer() {
    return scorer(TextOptions.defaults());
  }

  /// Loads the weights into a model that scores pairs of texts: a cross-encoder, such as a reranker.
  ///
  /// @return a scorer that owns the weights' memory until you close it
  /// @throws dev.gantry.core.GantryException as [#embedder(TextOptions)]; also if the model classifies no sequences
  public TextScorer scorer(TextOptions options) {
    return TextScorer.open(this, MisuseException.requireGiven("options", options));
  }

  /// Opens a classifier with the defaults of [TextOptions].
  public TextClassifier classifier() {
    return classifier(TextOptions.defaults());
  }

  /// Loads the weights into a model that gives texts labels with probabilities.
  ///
  /// @return a classifier that owns the weights' memory until you close it
  /// @throws dev.gantry.core.GantryException as [#scorer(TextOptions)]
  public TextClassifier classifier(TextOptions options) {
    return TextClassifier.open(this, MisuseException.requireGiven("options", options));
  }

  /// Opens a chat that takes the best tokens, with answers of 1,024 tokens at most.
  public Chat chat() {
    return chat(TextOptions.defaults(), TextGenerator.builder().optMaxTokens(1024).build());
  }

  /// Loads the weights into a model that answers in conversations, by the folder's `tokenizer.json` and chat template.
  ///
  /// @param options where it computes, and in which type; the others do not count
  /// @param generator chooses the tokens. Those that end a text by the folder's files end an answer, too
  /// @param stops texts that end an answer, without being part of it
  /// @return a chat that owns the weights' memory until you close it
  /// @throws dev.gantry.core.GantryException as [#load(Device, LoadOptions)]; also if the folder has no
  ///     `tokenizer.json` or chat template, or the model continues no texts
  public Chat chat(TextOptions options, TextGenerator generator, String... stops) {
    MisuseException.requireGiven("options", options);
    MisuseException.requireGiven("generator", generator);
    return Chat.open(
        this, options, generator, Arrays.asList(MisuseException.requireGiven("stops", stops)));
  }

  /// Loads the folder's weights into a model that has such a block already, in place: its arrays stay
  /// where they are and get new values. No prediction may run meanwhile.
  ///
  /// @throws MisuseException if the folder's `config.json` by now describes a block that computes otherwise. The
  ///     model is as it was
  /// @throws dev.gantry.core.GantryException as [#load(Device, LoadOptions)]; if the tensors do not
  ///     fit, the model is as it was
  public LoadReport refresh(Model model, LoadOptions options) {
    MisuseException.requireGiven("model", model);
    MisuseException.requireGiven("options", options);
    // Read anew: the folder's files may have been replaced since this was made.
    Architecture now = read(files, tower);
    if (!now.design().equals(BUILT.getOrDefault(model.getBlock(), architecture.design()))) {
      throw new MisuseException(
          (Files.isDirectory(folder()) ? folder().resolve("config.json") : folder())
              + " does not describe the block that the model has: load a new model of this folder");
    }
    return fill(model, options);
  }

  private LoadReport fill(Model model, LoadOptions options) {
    try (Weights opened = files.weights().get()) {
      return opened
          .hubNames()
          .load(model.getNDManager(), model.getBlock(), names(), options, inputShapes());
    }
  }

  /// Puts inputs into the order in which the block takes them. An input that may be left out and
  /// stands before one that is given gets what leaving it out means: ones for a mask, else zeros.
  ///
  /// @throws MisuseException if a name is not known, or an input is missing
  public NDList arranged(Map<String, NDArray> inputs) {
    MisuseException.requireGiven("inputs", inputs);
    List<String> known = inputs().stream().map(Input::name).toList();
    for (String name : inputs.keySet()) {
      if (!known.contains(name)) {
        throw new MisuseException(
            "there is no input '%s'; %s takes %s"
                .formatted(name, architecture(), String.join(", ", known)));
      }
    }
    NDList arranged = new NDList();
    int given = 0;
    for (Input input : inputs()) {
      NDArray array = inputs.get(input.name());
      if (array == null && input.required()) {
        throw new MisuseException("the input '" + input.name() + "' is missing");
      }
      given += array == null ? 0 : 1;
      if (array != null) {
        arranged.add(array);
      } else if (given < inputs.size()) {
        NDArray ids = arranged.head();
        arranged.add(input.name().equals("attention_mask") ? ids.onesLike() : ids.zerosLike());
      }
    }
    return arranged;
  }

  @Override
  public String toString() {
    return architecture()
        + inputs().stream().map(Input::name).collect(Collectors.joining(", ", "(", ")"));
  }
}
