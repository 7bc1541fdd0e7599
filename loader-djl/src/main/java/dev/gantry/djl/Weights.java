// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import ai.djl.nn.BlockFactory;
import ai.djl.nn.ParameterList;
import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Session;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.checksum.KnownChecksums;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.internal.torch.PyTorch;
import dev.gantry.djl.internal.weights.IntoLoad;
import dev.gantry.djl.internal.weights.LoadSettings;
import dev.gantry.djl.internal.weights.OpenWeights;
import dev.gantry.djl.internal.weights.ParameterLoad;
import dev.gantry.djl.internal.weights.TensorLoad;
import dev.gantry.djl.internal.weights.TypePolicy;
import dev.gantry.formats.internal.gguf.GgufHubNames;
import dev.gantry.formats.internal.quantised.QuantisedWeights;
import dev.gantry.formats.internal.weights.LoadedTensors;
import dev.gantry.formats.spi.Encoding;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.nio.file.Path;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Loads named tensors from files: a safetensors file, a folder of them, a `model.safetensors.index.json`, a
/// NumPy `.npy` or `.npz`, a GGUF file, or any other format that is registered
/// ([WeightsFormat][dev.gantry.formats.spi.WeightsFormat]). The files' first bytes tell the format.
///
/// Opening reads and checks the headers; loading brings the tensors' bytes straight into memory
/// that the NDArrays own. Tensors that are stored differently than in memory, such as compressed
/// tensors or tensors in Fortran order, are decoded by the CPU. An array's memory stays allocated
/// until the array and all of its views are closed, even if the weights, the list or a parent
/// array are closed before. Tensors that are adjacent in the file share an allocation of up to 512
/// MiB, which is freed after the last of their arrays is closed.
///
/// Thread-safe: several loads may run at once.
public final class Weights implements AutoCloseable {
  private final OpenWeights open;
  private final WeightsCatalogue contents;
  private final GantrySession session;
  private @Nullable SequencedMap<String, StoredTensor> quantised;
  private @Nullable SequencedMap<String, TensorInfo> tensors;
  private volatile boolean closed;

  Weights(OpenWeights open, GantrySession session) {
    this.open = open;
    this.contents = open.contents();
    this.session = session;
  }

  /// Opens with the process's shared session.
  ///
  /// @throws dev.gantry.core.MalformedFileException if a file breaks a rule of its format, or its
  ///     format is not known
  /// @throws dev.gantry.core.TransferException if a file cannot be opened or read
  public static Weights open(Path path) {
    return open(path, GantrySession.shared());
  }

  /// Opens a file of any store: a path, or a URL such as `https://host/folder/model.safetensors`.
  ///
  /// `gantry-resident:///path/to/weights.sock` names weights that `gantry serve-weights` keeps in memory.
  /// Loads onto the device where they lie read nothing: the arrays are over the server's memory, which
  /// lives on when the server ends, and which they cannot change. Close these weights when nothing more is to
  /// be loaded: until then the server counts this process as a reader.
  ///
  /// @throws MisuseException if the text is neither, or no store serves the URL's scheme; else as
  ///     [#open(Path)]
  /// @throws dev.gantry.core.DeviceUnavailableException if this process does not see the GPU on which a
  ///     server's weights lie
  public static Weights open(String location) {
    return open(location, GantrySession.shared());
  }

  /// Opens with a session of yours, which must stay open for as long as this loads.
  public static Weights open(Path path, Session session) {
    MisuseException.requireGiven("path", path);
    return open(Location.of(path), session);
  }

  /// Opens a file of any store with a session of yours, which must stay open for as long as this
  /// loads.
  public static Weights open(String location, Session session) {
    MisuseException.requireGiven("location", location);
    return open(Location.of(location), session);
  }

  private static Weights open(Location location, Session session) {
    GantrySession own = GantrySession.of(MisuseException.requireGiven("session", session));
    return new Weights(OpenWeights.of(location, own), own);
  }

  /// Returns these weights under the names that the hub's files have, such as
  /// `model.layers.0.self_attn.q_proj.weight`: a GGUF file calls it `blk.0.attn_q.weight`, and
  /// may hold its rows in another order, which is undone. Weights that have such names already
  /// are returned as they are.
  ///
  /// @return weights that are closed with these
  public Weights hubNames() {
    requireOpen();
    WeightsCatalogue named = GgufHubNames.of(contents);
    return named == contents ? this : new Weights(open.named(named), session);
  }

  /// The tensors by name, without loading them: true dtypes and shapes, also of tensors that DJL
  /// cannot hold.
  public synchronized SequencedMap<String, TensorInfo> tensors() {
    if (tensors == null) {
      // Made at the first call, not when the weights are opened: loads do not need it, and it takes
      // milliseconds for 20,000 tensors.
      SequencedMap<String, TensorInfo> infos =
          LinkedHashMap.newLinkedHashMap(contents.tensors().size());
      contents.tensors().forEach((name, tensor) -> infos.put(name, TensorInfo.of(tensor)));
      tensors = Collections.unmodifiableSequencedMap(infos);
    }
    return tensors;
  }

  /// The files' notes, such as safetensors' `__metadata__`; empty where the format has none.
  public SequencedMap<String, String> metadata() {
    return contents.metadata();
  }

  /// The format's name, such as `safetensors`.
  public String format() {
    return contents.format();
  }

  /// The data files.
  public List<Location> files() {
    return contents.files();
  }

  /// The size of all tensors together in memory, in bytes.
  public long totalBytes() {
    return contents.totalBytes();
  }

  /// Loads everything onto the manager's device.
  public NDList load(NDManager manager) {
    return load(manager, LoadOptions.defaults());
  }

  /// Loads tensors as arrays with their names, in the catalogue's order. The manager owns them, as
  /// it does all of its arrays.
  ///
  /// BF16 and the unsigned and 16-bit integers come as arrays that know their type and refuse what
  /// DJL's native code cannot do. FP8 and sub-byte tensors come as their raw bytes: UINT8 of shape
  /// `[bytes]`; [#tensors] has their true dtype and shape.
  ///
  /// @throws dev.gantry.core.TransferException if a file or device fails, or the load is cancelled;
  ///     nothing stays loaded then
  /// @throws dev.gantry.core.MisuseException if a selected name is unknown, a cast does not exist,
  ///     the manager is not PyTorch's, or this is closed
  public NDList load(NDManager manager, LoadOptions options) {
    MisuseException.requireGiven("manager", manager);
    MisuseException.requireGiven("options", options);
    requireOpen();
    return new TensorLoad(session, manager, arraySettings(options)).load(selected(options));
  }

  /// Loads everything onto several devices; see [#load(NDManager, Placement, LoadOptions)].
  public List<NDList> load(NDManager manager, Placement placement) {
    return load(manager, placement, LoadOptions.defaults());
  }

  /// Loads tensors onto each of several devices, as [#load(NDManager, LoadOptions)] does onto one, and reads
  /// each byte once: the same tensors, or a part of each.
  ///
  /// @return a list for each device, in their order; the manager owns them all
  /// @throws dev.gantry.core.MisuseException as [#load(NDManager, LoadOptions)], or if a tensor does not
  ///     divide by the number of devices, or the options have a device, `optLazy` or, for slices, `optSlices`
  /// @throws dev.gantry.core.DeviceUnavailableException if a transport was asked for that does not serve these devices
  /// @throws dev.gantry.core.TransferException as [#load(NDManager, LoadOptions)]; nothing stays loaded on
  ///     any device then
  public List<NDList> load(NDManager manager, Placement placement, LoadOptions options) {
    MisuseException.requireGiven("manager", manager);
    MisuseException.requireGiven("placement", placement);
    MisuseException.requireGiven("options", options);
    requireOpen();
    LoadSettings settings = arraySettings(options);
    if (settings.lazy() || settings.device().isPresent()) {
      throw new MisuseException(
          "a load by a Placement takes no optLazy or optDevice: it reads, onto the Placement's"
              + " devices");
    }
    if (placement.slices().isPresent() && options.slice().isPresent()) {
      throw new MisuseException(
          "a load by Placement.sliced takes no optSlices: its devices are the ranks, in their"
              + " order");
    }
    int world = placement.devices().size();
    TensorSelection selection = options.selection().orElseGet(TensorSelection::all);
    List<SequencedMap<String, StoredTensor>> tensors =
        placement
            .slices()
            .map(slices ->
                IntStream.range(0, world)
                    .mapToObj(rank -> selection.of(slices.of(whole(options, false), rank, world)))
                    .toList())
            .orElseGet(() -> Collections.nCopies(world, selected(options)));
    boolean replicated = placement.slices().isEmpty();
    return new TensorLoad(session, manager, placement.devices(), replicated, settings)
        .loadEach(tensors);
  }

  /// Loads tensors as plain memory, for libraries other than DJL, in their stored types.
  ///
  /// @param options how to load; their device is the CPU unless they name another
  /// @throws dev.gantry.core.TransferException as [#load(NDManager, LoadOptions)]
  /// @throws MisuseException if a selected name is unknown, the options ask for a cast or for lazy
  ///     memory, or this is closed
  public TensorMemory loadMemory(LoadOptions options) {
    MisuseException.requireGiven("options", options);
    requireOpen();
    LoadSettings settings = arraySettings(options);
    if (!settings.types().isNone() || settings.lazy()) {
      throw new MisuseException(
          "loadMemory takes no optCast, optAsStored or optLazy: they are for NDArrays");
    }
    Device device = PyTorch.device(settings.device().orElseGet(ai.djl.Device::cpu));
    List<StoredTensor> selected = List.copyOf(selected(options).values());
    LoadedTensors loaded = LoadedTensors.load(session, selected, device, settings.transfer());
    return Cleanup.orUndo(
        () -> {
          settings.report().accept(loaded.report());
          return new TensorMemory(selected.stream().map(TensorInfo::of).toList(), loaded, device);
        },
        loaded::close);
  }

  /// Copies tensors to existing arrays, on any device; see [#copyTo(Map, LoadOptions)].
  public TransferReport copyTo(Map<String, NDArray> arrays) {
    return copyTo(arrays, LoadOptions.defaults());
  }

  /// Copies one tensor to an existing array; see [#copyTo(Map, LoadOptions)].
  public TransferReport copyTo(String tensor, NDArray array) {
    MisuseException.requireGiven("tensor", tensor);
    MisuseException.requireGiven("array", array);
    return copyTo(Map.of(tensor, array));
  }

  /// Copies tensors to existing arrays, on any device: the arrays' memory is overwritten, and no
  /// new arrays are made. An array must have its tensor's type and shape and be dense in C order;
  /// a slice of rows is dense, too. The load waits first for work that was queued on the arrays'
  /// devices; the arrays must not be used until it returns.
  ///
  /// @param arrays by the tensors' names
  /// @param options how to load, without device, casts and `optLazy`; a selection may cut tensors to rows
  /// @throws dev.gantry.core.MisuseException if a name is unknown, an array is not as its tensor, not
  ///     dense or of another engine, two arrays overlap, or this is closed; nothing has changed then
  /// @throws dev.gantry.core.TransferException if a file cannot be opened; nothing has changed then
  /// @throws dev.gantry.core.TransferException.IncompleteRead if a file or device fails later, or the
  ///     load is cancelled: it says which tensors are complete
  public TransferReport copyTo(Map<String, NDArray> arrays, LoadOptions options) {
    MisuseException.requireGiven("arrays", arrays);
    return told(options, into("copyTo", options).arrays(selected(options), arrays));
  }

  /// Copies tensors to memory of any kind and of their sizes, as [#copyTo(Map, LoadOptions)] does to arrays:
  /// dense, in C order, little endian.
  public TransferReport copyToMemory(Map<String, Memory> memory, LoadOptions options) {
    MisuseException.requireGiven("memory", memory);
    return told(options, into("copyToMemory", options).memory(selected(options), memory));
  }

  private IntoLoad into(String method, LoadOptions options) {
    MisuseException.requireGiven("options", options);
    requireOpen();
    LoadSettings settings = arraySettings(options);
    if (!settings.types().isNone() || settings.lazy() || settings.device().isPresent()) {
      throw new MisuseException(
          method
              + " takes no optCast, optAsStored, optLazy or optDevice: the memory that is given has"
              + " its type and device");
    }
    return new IntoLoad(session, settings.transfer());
  }

  private SequencedMap<String, StoredTensor> selected(LoadOptions options) {
    return options.selection().orElseGet(TensorSelection::all).of(tensors(options, false));
  }

  /// The tensors, each whole or cut to a rank's part, as the options say.
  ///
  /// @param ofBlock whether a block's parameters decide which types tensors become
  private SequencedMap<String, StoredTensor> tensors(LoadOptions options, boolean ofBlock) {
    return options
        .slice()
        .map(slice -> slice.slices().of(whole(options, ofBlock), slice.rank(), slice.world()))
        .orElseGet(() -> whole(options, ofBlock));
  }

  /// The tensors as the model has them where a type is asked for, and else as they are stored.
  private SequencedMap<String, StoredTensor> whole(LoadOptions options, boolean ofBlock) {
    TypePolicy types = options.settings().types();
    if (ofBlock ? types.asStored() : types.isNone()) {
      return contents.tensors();
    }
    SequencedMap<String, StoredTensor> all = new LinkedHashMap<>();
    dequantised()
        .forEach((name, tensor) -> {
          if (!ofBlock
              && tensor.encoding() instanceof Encoding.Quantised layout
              && types.of(name).isEmpty()) {
            layout.inputs().stream()
                .map(input -> input.tensor().name())
                .forEach(stored -> all.put(stored, contents.tensors().get(stored)));
          } else {
            all.put(name, tensor);
          }
        });
    return all;
  }

  private synchronized SequencedMap<String, StoredTensor> dequantised() {
    SequencedMap<String, StoredTensor> found = quantised;
    if (found == null) {
      found = QuantisedWeights.tensors(session, contents);
      quantised = found;
    }
    return found;
  }

  private static TransferReport told(LoadOptions options, TransferReport report) {
    options.settings().report().accept(report);
    return report;
  }

  /// Loads a block's parameters, direct ones and its children's, and initialises the block, so that
  /// it predicts afterwards.
  ///
  /// A parameter that has no array yet gets the loaded one, cast to FLOAT32, or to what `optCast`
  /// says; without a copy where it is of that type. One that has an array keeps it, and the values
  /// are copied into it, cast to its type where both are floating-point, so that trainers and other
  /// holders of the array see them.
  ///
  /// @param inputShapes of one batch, as [Block#initialize] takes them; needed unless the block is
  ///     initialised, and not used then
  /// @return what was loaded, what the block lacks, and what it did not use
  /// @throws dev.gantry.core.MisuseException if the block is not initialised and cannot be from
  ///     `inputShapes`; a parameter lacks a tensor, and `optPartial` does not allow that; a shape
  ///     or type is not the parameter's; `names` is a table with entries for other parameters; the
  ///     options have a selection; or this is closed. No parameter has been changed then
  public LoadReport load(
      NDManager manager,
      Block block,
      ParameterNames names,
      LoadOptions options,
      Shape... inputShapes) {
    MisuseException.requireGiven("manager", manager);
    MisuseException.requireGiven("block", block);
    MisuseException.requireGiven("names", names);
    MisuseException.requireGiven("options", options);
    return LoadReport.of(parameterLoad(manager, options).into(block, names.rules(), inputShapes));
  }

  /// Loads parameters as [#load(NDManager, Block, ParameterNames, LoadOptions, Shape...)] does, but
  /// initialises nothing: a parameter that has no array gets one of the tensor's type, unless `optCast` says
  /// otherwise; if it has no tensor either, it stays without an array.
  ///
  /// @throws dev.gantry.core.MisuseException as [#load(NDManager, Block, ParameterNames, LoadOptions,
  ///     Shape...)]
  public LoadReport load(
      NDManager manager, ParameterList parameters, ParameterNames names, LoadOptions options) {
    MisuseException.requireGiven("manager", manager);
    MisuseException.requireGiven("parameters", parameters);
    MisuseException.requireGiven("names", names);
    MisuseException.requireGiven("options", options);
    return LoadReport.of(parameterLoad(manager, options).into(parameters, names.rules()));
  }

  /// Returns a block factory for DJL's `Criteria`: it makes a block and loads its parameters from the weights
  /// files in the model's folder, onto the model's device. Give it as the argument `blockFactory`. With
  /// `optEngine("PyTorch")`, set the option `hasParameter` to `false`, too: DJL looks for a file of its own
  /// format otherwise. `optEngine("Gantry")` needs no such option.
  ///
  /// @param blocks makes the block without parameters; called once for each model
  /// @param inputShapes of one batch, as [Block#initialize] takes them
  /// @return throws what [#open] and [#load] throw
  public static BlockFactory blockFactory(
      BlockFactory blocks, ParameterNames names, LoadOptions options, Shape... inputShapes) {
    MisuseException.requireGiven("blocks", blocks);
    MisuseException.requireGiven("names", names);
    MisuseException.requireGiven("options", options);
    return (model, folder, arguments) -> {
      Block block = blocks.newBlock(model, folder, arguments);
      try (Weights weights = open(folder)) {
        weights.load(model.getNDManager(), block, names, options, inputShapes);
      }
      // Tells a model of the engine Gantry to load nothing more. Models of DJL's engines do not
      // look at this.
      model.setProperty("hasParameter", "false");
      return block;
    };
  }

  ParameterLoad parameterLoad(NDManager manager, LoadOptions options) {
    requireOpen();
    if (options.selection().isPresent()) {
      throw new MisuseException(
          "a load into parameters takes no optSelection: the parameter names choose the tensors");
    }
    return new ParameterLoad(session, manager, settings(options), tensors(options, true));
  }

  /// The settings of a load whose targets are no parameters.
  private LoadSettings arraySettings(LoadOptions options) {
    LoadSettings settings = settings(options);
    if (settings.partial() || settings.skipMismatched()) {
      throw new MisuseException(
          "optPartial and optSkipMismatched are for loads into a block or its parameters");
    }
    return settings;
  }

  private LoadSettings settings(LoadOptions options) {
    LoadSettings settings = options.settings();
    if (!options.verify() && (!open.alwaysVerify() || settings.lazy())) {
      return settings;
    }
    if (settings.lazy()) {
      throw new MisuseException(
          "optVerify compares what a load reads, and optLazy reads nothing: choose one of them");
    }
    return settings.withTransfer(
        settings.transfer().withChecksums(new KnownChecksums(open.sums().get())));
  }

  private void requireOpen() {
    if (closed) {
      throw new MisuseException("these weights are closed");
    }
  }

  /// Refuses later loads. Loaded arrays stay valid. Between loads, only the connection to a server
  /// of resident weights is held open.
  @Override
  public void close() {
    closed = true;
    open.close();
  }
}
