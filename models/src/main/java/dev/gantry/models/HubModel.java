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

/// A model of the Hugging Face hub. It is given by its name, by a local folder with `config.json`
/// and weights, or by a GGUF file. Its architecture must be one of those that `docs/models.md`
/// lists.
///
/// ```java
/// HubModel hub = HubModel.of(folder);
/// try (Model model = hub.load(Device.gpu(), LoadOptions.defaults());
///     Predictor<NDList, NDList> predictor = model.newPredictor(new NoopTranslator())) {
///   …
/// }
/// ```
///
/// Immutable and thread-safe. An instance holds the contents of `config.json`, and no weights.
public final class HubModel {
  /// Describes an input of the model.
  ///
  /// @param name the hub's name of the input, such as `input_ids`
  /// @param bound the exclusive upper bound of the values, whose lower bound is 0; 0 for no bound
  /// @param required whether the input must be given
  public record Input(String name, DataType type, long bound, boolean required) {}

  /// One of the two models in a folder that was trained on texts and images, such as CLIP.
  public enum Tower {
    TEXT,
    IMAGE
  }

  /// The design of each block that this class has made.
  private static final Map<Block, Object> BUILT = Collections.synchronizedMap(new WeakHashMap<>());

  private final FetchedModel files;
  private final @Nullable Tower tower;
  private final Architecture architecture;

  private HubModel(FetchedModel files, @Nullable Tower tower, Architecture architecture) {
    this.files = files;
    this.tower = tower;
    this.architecture = architecture;
  }

  /// @param tower the model of the folder to use; null for the whole model
  private static HubModel of(FetchedModel fetched, @Nullable Tower tower) {
    FetchedModel files = tower == null ? fetched.transformer() : fetched;
    return new HubModel(files, tower, read(files, tower));
  }

  private static Architecture read(FetchedModel files, @Nullable Tower tower) {
    HubFolder read = HubFolder.read(files);
    return Architecture.of(tower == null ? read : read.tower(tower));
  }

  /// Reads a model of the hub by its name, such as `hf://OWNER/NAME@REVISION`, or a local folder
  /// or GGUF file. The files that describe a model of the hub are copied to the hub's cache
  /// folder, which [#folder] returns. Its weights are fetched by the first load and kept in the
  /// same cache. A GGUF file of the hub is copied as a whole at once.
  ///
  /// @throws dev.gantry.core.GantryException as [#of(Path)]; also if the hub refuses a request, or
  ///     cannot be reached and the cache lacks a file
  public static HubModel of(String location) {
    return of(FetchedModel.of(MisuseException.requireGiven("location", location)), null);
  }

  /// Reads one of the two models of a location, as [#of(Path, Tower)] does for a folder.
  ///
  /// @throws dev.gantry.core.GantryException as [#of(String)]; also if the location does not hold
  ///     two models
  public static HubModel of(String location, Tower tower) {
    MisuseException.requireGiven("tower", tower);
    return of(FetchedModel.of(MisuseException.requireGiven("location", location)), tower);
  }

  /// Reads and checks `config.json`, or the metadata of a GGUF file.
  ///
  /// @param folder a folder with a `config.json`, a GGUF file, or a folder with a GGUF file and no
  ///     `config.json`. If the folder has a `modules.json`, which sentence-transformers writes,
  ///     the model is in the first folder that this file names
  /// @throws dev.gantry.core.MalformedFileException if the architecture is not known, or the file
  ///     breaks a rule; the message names the key, its value and the rule
  /// @throws MisuseException if the folder does not exist and its path looks like a model's name
  ///     on the hub
  /// @throws dev.gantry.core.TransferException if the folder or its `config.json` does not exist
  ///     or cannot be read
  public static HubModel of(Path folder) {
    return of(FetchedModel.local(MisuseException.requireGiven("folder", folder)), null);
  }

  /// Reads and checks one of the two models of a `config.json`, such as that of a `CLIPModel` or
  /// `SiglipModel`. The model's vectors are comparable: the cosine of a text's and an image's
  /// vector says how well they match. With CLIP, the vectors are the first output, `text_embeds`
  /// or `image_embeds`. With SigLIP, they are the second output, `pooler_output`.
  ///
  /// @throws dev.gantry.core.MalformedFileException as [#of(Path)]; also if the folder does not
  ///     hold two models
  /// @throws dev.gantry.core.TransferException as [#of(Path)]
  public static HubModel of(Path folder, Tower tower) {
    MisuseException.requireGiven("folder", folder);
    return of(FetchedModel.local(folder), MisuseException.requireGiven("tower", tower));
  }

  /// Returns the same model without its head. It computes the hidden states of a text's tokens.
  ///
  /// @throws MisuseException if this is a tower, whose vectors are the output of a head
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

  /// Returns the location that was given.
  Path root() {
    return files.root();
  }

  /// Returns the folder or GGUF file that holds the model itself: `config.json`, the weights and
  /// the tokenizer.
  public Path folder() {
    return files.path();
  }

  /// Returns the architecture's name, such as `LlamaForCausalLM`.
  public String architecture() {
    return architecture.name();
  }

  /// Makes a new block without weights.
  public Block newBlock() {
    Block block = architecture.design().newBlock();
    BUILT.put(block, architecture.design());
    return block;
  }

  /// Returns the rules that name the tensor of each parameter of the block. Every parameter must
  /// have a tensor, even if `optPartial` allows unused tensors.
  public ParameterNames names() {
    return architecture.names().complete();
  }

  /// Returns the inputs that the block takes, in its order. Only optional inputs at the end may be
  /// left out of the list.
  public List<Input> inputs() {
    return architecture.inputs();
  }

  /// Returns the names of the block's outputs, in its order. The arrays that the block returns
  /// have these names.
  public List<String> outputs() {
    return architecture.outputs();
  }

  /// Returns the names of the classes, such as `tabby, tabby cat`; the index in the list is the
  /// number of the class. The list is empty if the model does not classify.
  public List<String> labels() {
    return architecture.labels();
  }

  /// Returns the ids of the tokens that end a text, for [TextGenerator.Builder#optEnds]. They are
  /// `eos_token_id` of `generation_config.json` if that file exists, else of `config.json`.
  public long[] endTokens() {
    return architecture.ends().stream().mapToLong(Integer::longValue).toArray();
  }

  /// Returns input shapes with which the block can be initialised, such as the shape of one image.
  public Shape[] inputShapes() {
    return architecture.shapes().toArray(Shape[]::new);
  }

  /// Loads the weights as FLOAT32 onto DJL's default device: the first GPU, or host memory if
  /// there is none.
  ///
  /// @throws dev.gantry.core.GantryException as [#load(Device, LoadOptions)]
  public Model load() {
    return load(TorchArrays.defaultDevice(), LoadOptions.defaults());
  }

  /// Loads the weights into a new block. The block is frozen: its parameters have no gradients
  /// until you call `freezeParameters(false)`.
  ///
  /// @param options the options of the load; without `optCast`, floating-point tensors become
  ///     FLOAT32
  /// @return a model that owns the memory of the weights until you close it
  /// @throws dev.gantry.core.MisuseException if the tensors do not fit the block
  /// @throws dev.gantry.core.MalformedFileException if a data file breaks a rule of its format
  /// @throws dev.gantry.core.TransferException if reading a file or copying to the device fails
  /// @throws dev.gantry.core.DeviceUnavailableException if DJL has no PyTorch engine, or its
  ///     libtorch cannot use the device
  public Model load(Device device, LoadOptions options) {
    MisuseException.requireGiven("device", device);
    MisuseException.requireGiven("options", options);
    // This throws an error of one line if DJL has no PyTorch engine.
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

  /// Loads the weights into an embedder, which turns texts into vectors. If sentence-transformers
  /// wrote the folder, its files say how; otherwise a vector is the mean of the hidden states of
  /// the text's tokens.
  ///
  /// @return an embedder that owns the memory of the weights until you close it
  /// @throws dev.gantry.core.GantryException as [#load(Device, LoadOptions)]; also if the folder
  ///     has no `tokenizer.json`, or has a module of an unknown kind
  public TextEmbedder embedder(TextOptions options) {
    return TextEmbedder.open(this, MisuseException.requireGiven("options", options));
  }

  /// Opens a scorer with the defaults of [TextOptions].
  public TextScorer scorer() {
    return scorer(TextOptions.defaults());
  }

  /// Loads the weights into a scorer of pairs of texts: a cross-encoder, such as a reranker.
  ///
  /// @return a scorer that owns the memory of the weights until you close it
  /// @throws dev.gantry.core.GantryException as [#embedder(TextOptions)]; also if the model is no
  ///     sequence classifier
  public TextScorer scorer(TextOptions options) {
    return TextScorer.open(this, MisuseException.requireGiven("options", options));
  }

  /// Opens a classifier with the defaults of [TextOptions].
  public TextClassifier classifier() {
    return classifier(TextOptions.defaults());
  }

  /// Loads the weights into a classifier, which gives each text a probability for every label.
  ///
  /// @return a classifier that owns the memory of the weights until you close it
  /// @throws dev.gantry.core.GantryException as [#scorer(TextOptions)]
  public TextClassifier classifier(TextOptions options) {
    return TextClassifier.open(this, MisuseException.requireGiven("options", options));
  }

  /// Opens a chat that always takes the token of the highest score. An answer has at most 1,024
  /// tokens.
  public Chat chat() {
    return chat(TextOptions.defaults(), TextGenerator.builder().optMaxTokens(1024).build());
  }

  /// Loads the weights into a model that answers in conversations. The folder's `tokenizer.json`
  /// and chat template turn a conversation into tokens.
  ///
  /// @param options the device and the type of the arithmetic; the other options are ignored
  /// @param generator chooses the tokens; the folder's end tokens end an answer in addition to the
  ///     generator's own
  /// @param stops texts that end an answer and are not part of it
  /// @return a chat that owns the memory of the weights until you close it
  /// @throws dev.gantry.core.GantryException as [#load(Device, LoadOptions)]; also if the folder
  ///     has no `tokenizer.json` or chat template, or the model is no language model that
  ///     continues texts
  public Chat chat(TextOptions options, TextGenerator generator, String... stops) {
    MisuseException.requireGiven("options", options);
    MisuseException.requireGiven("generator", generator);
    return Chat.open(
        this, options, generator, Arrays.asList(MisuseException.requireGiven("stops", stops)));
  }

  /// Loads the folder's weights into a model that already has such a block. The block's arrays
  /// keep their memory and get new values. No prediction may run meanwhile.
  ///
  /// @throws MisuseException if the folder's present `config.json` describes a block that computes
  ///     differently; the model is unchanged then
  /// @throws dev.gantry.core.GantryException as [#load(Device, LoadOptions)]; if the tensors do
  ///     not fit the block, the model is unchanged
  public LoadReport refresh(Model model, LoadOptions options) {
    MisuseException.requireGiven("model", model);
    MisuseException.requireGiven("options", options);
    // The folder is read again, because its files may have been replaced since this instance was
    // made.
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

  /// Puts inputs into the order in which the block takes them. An optional input that is missing
  /// before a given one is replaced by its default: ones for a mask, zeros for others.
  ///
  /// @throws MisuseException if a name is unknown, or a required input is missing
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
