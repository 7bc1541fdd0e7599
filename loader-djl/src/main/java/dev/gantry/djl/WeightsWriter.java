// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.nn.Block;
import ai.djl.nn.ParameterList;
import dev.gantry.core.Cancellation;
import dev.gantry.core.MisuseException;
import dev.gantry.core.ProgressListener;
import dev.gantry.core.Session;
import dev.gantry.core.TensorShape;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.internal.datasets.Alternatives;
import dev.gantry.djl.internal.export.BlockExport;
import dev.gantry.formats.internal.safetensors.DataFileOptions;
import dev.gantry.formats.internal.safetensors.NewSafetensors;
import dev.gantry.formats.internal.safetensors.NewTensor;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// Writes NDArrays of any dtype and device as safetensors: one file, or a folder of data files with
/// their index. [Weights] and the reference implementation read them. The same arrays and options
/// always give the same bytes.
///
/// The bytes are written from the arrays' own memory, so the arrays must not change during a
/// write. Thread-safe.
public final class WeightsWriter {
  private final GantrySession session;
  private final Path target;
  private final boolean isFolder;
  private final DataFileOptions files;
  private final Map<String, String> metadata;
  private final WriteOptions options;
  private final Map<String, TensorShape> shapes;

  private WeightsWriter(Builder builder, Path target) {
    this.session = builder.session;
    this.target = target;
    this.isFolder = builder.isFolder;
    this.files = builder.files;
    this.metadata = new LinkedHashMap<>(builder.metadata);
    this.options = builder.options;
    this.shapes = builder.shapes;
  }

  /// Returns a builder; you must set a file or a folder.
  public static Builder builder() {
    return new Builder();
  }

  /// Writes arrays by their own names; see [#write(Map)].
  ///
  /// @throws MisuseException if an array has no name, or two have the same one; also as [#write(Map)]
  public void write(NDList arrays) {
    try (ArraySources sources = ArraySources.of(arrays)) {
      write(sources);
    }
  }

  /// Writes arrays by these names, and returns when all of them are on the disk.
  ///
  /// A single file replaces an existing file of its name atomically. A folder must not contain
  /// safetensors files or an index yet, because no order of replacing several files is safe
  /// against a crash. After a failure, the file or folder is unchanged.
  ///
  /// @throws MisuseException if an array is sparse, of strings, or another engine's; if a name is
  ///     `__metadata__` or not valid text; or if the folder has files that would be confused with
  ///     the new files
  /// @throws dev.gantry.core.TransferException if a file or device fails, or the write is cancelled
  public void write(Map<String, NDArray> arrays) {
    try (ArraySources sources = ArraySources.of(arrays)) {
      write(sources);
    }
  }

  /// Writes a block's parameters as the tensors that rules make them of, so that other tools and [Weights]
  /// with the same rules read them: rules give the names, and transforms are undone. Tied parameters are
  /// written once, constants not at all. Prefixes and aliases apply only with [Builder#optLike]. The tensors
  /// are of the parameters' types.
  ///
  /// A reshape, a pad and a concatenation of unequal tensors do not tell the tensors' shapes;
  /// [Builder#optLike] does. Transformed parameters are copied until the write ends.
  ///
  /// @throws MisuseException if a parameter has no array or no rule, two parameters are the same part
  ///     of a tensor, a part of one has no parameter, a shape is not known, or tied parameters
  ///     differ; else as [#write(Map)]
  public void write(Block block, ParameterNames names) {
    MisuseException.requireGiven("block", block);
    write(block.getParameters(), names);
  }

  /// Writes parameters as [#write(Block, ParameterNames)] does.
  public void write(ParameterList parameters, ParameterNames names) {
    MisuseException.requireGiven("parameters", parameters);
    MisuseException.requireGiven("names", names);
    try (BlockExport export = BlockExport.of(parameters, names.rules(), shapes)) {
      write(export.tensors());
    }
  }

  private void write(ArraySources sources) {
    List<NewTensor> tensors = sources.tensors();
    NewSafetensors made =
        isFolder
            ? NewSafetensors.folder(target, tensors, metadata, files)
            : NewSafetensors.file(target, tensors, metadata);
    var _ = made.write(session, options);
  }

  /// The options of all builders of something that writes tensors. Not thread-safe.
  ///
  /// @param <T> the builder itself
  public abstract static sealed class Options<T extends Options<T>>
      permits CheckpointSaver.Builder, Builder {
    GantrySession session = GantrySession.shared();
    DataFileOptions files = DataFileOptions.defaults();
    WriteOptions options = WriteOptions.defaults();

    Options() {}

    /// Returns this builder as its own type.
    abstract T self();

    /// The session that moves the bytes; default: the process's shared one. It must stay open for as long as
    /// the built object is used.
    public T optSession(Session chosen) {
      session = GantrySession.of(MisuseException.requireGiven("optSession", chosen));
      return self();
    }

    /// The most bytes of tensors in one data file; default: 5 GB. A larger tensor gets a file of its own.
    public T optFileBytes(long bytes) {
      MisuseException.requireRange("optFileBytes", bytes, 1, Long.MAX_VALUE);
      files = files.withFileBytes(bytes);
      return self();
    }

    /// The most bytes of one write, a multiple of 4096, at most 1 GiB; default: 16 MiB. Each writer
    /// thread has two buffers of this size.
    public T optRequestBytes(long bytes) {
      options = options.withRequestBytes(bytes);
      return self();
    }

    /// How many threads write at once; default: 0, which means 4.
    public T optThreads(int threads) {
      options = options.withThreads(threads);
      return self();
    }

    /// The only transport for device memory: for a checkpoint's snapshots on a device, where these are taken. Default:
    /// it is chosen by evidence.
    public T optTransport(Transport chosen) {
      options = options.withTransport(MisuseException.requireGiven("optTransport", chosen));
      return self();
    }

    /// Whether files are written through the page cache; default: only if the file system has no direct
    /// I/O.
    public T optPageCache(boolean chosen) {
      options = options.withPageCache(chosen);
      return self();
    }

    /// Sets a listener that is told how many bytes are written.
    public T optProgress(ProgressListener listener) {
      options = options.withProgress(MisuseException.requireGiven("optProgress", listener));
      return self();
    }

    /// Sets what can end the current write early, and every later one.
    public T optCancellation(Cancellation cancellation) {
      options =
          options.withCancellation(MisuseException.requireGiven("optCancellation", cancellation));
      return self();
    }
  }

  /// Makes [WeightsWriter]s. Not thread-safe.
  public static final class Builder extends Options<Builder> {
    private final Alternatives alternatives = new Alternatives();
    private @Nullable Path target;
    private boolean isFolder;
    private final Map<String, String> metadata = new LinkedHashMap<>();
    private Map<String, TensorShape> shapes = Map.of();

    private Builder() {}

    @Override
    Builder self() {
      return this;
    }

    /// The one file to write.
    ///
    /// @throws MisuseException if it is named like a file of another format, such as `model.pt`
    public Builder setFile(Path file) {
      Builder builder = target("setFile", file, false);
      if (NewSafetensors.isNamedLikeAnother(String.valueOf(file.getFileName()))) {
        throw new MisuseException(
            "setFile must not be named like a file of another format: safetensors are written (was "
                + file
                + ")");
      }
      return builder;
    }

    /// The folder to write data files and their index to, instead of one file; it is made where it is
    /// missing.
    public Builder setFolder(Path folder) {
      return target("setFolder", folder, true);
    }

    private Builder target(String option, Path path, boolean folder) {
      alternatives.call("where to write", option, MisuseException.requireGiven(option, path));
      target = path;
      isFolder = folder;
      return this;
    }

    /// Sets the text with which the names of a folder's files begin; default: `model`.
    public Builder optName(String name) {
      MisuseException.requireGiven("optName", name);
      files = files.withStem(name);
      return this;
    }

    /// Parameters become tensors of the shapes that these weights have, such as those that the block
    /// was loaded from, and of their names, prefixes and aliases included. Only shapes and names are
    /// used.
    public Builder optLike(Weights weights) {
      MisuseException.requireGiven("optLike", weights);
      Map<String, TensorShape> known = new HashMap<>();
      weights.tensors().forEach((name, tensor) -> known.put(name, tensor.shape()));
      shapes = known;
      return this;
    }

    /// A note of yours, for the `__metadata__` of every file.
    public Builder optMetadata(String key, String value) {
      MisuseException.requireGiven("key of optMetadata", key);
      MisuseException.requireGiven("value of optMetadata", value);
      metadata.put(key, value);
      return this;
    }

    /// @throws MisuseException if neither a file nor a folder is set, or one file has options of a folder
    public WeightsWriter build() {
      Path chosen = MisuseException.requireGiven("setFile or setFolder", target);
      if (!isFolder && !files.equals(DataFileOptions.defaults())) {
        throw new MisuseException(
            "optName and optFileBytes are for the files of setFolder, and setFile names the only"
                + " one");
      }
      return new WeightsWriter(this, chosen);
    }
  }
}
