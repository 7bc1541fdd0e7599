// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.safetensors;

import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.commit.NewFile;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.commit.WriteReport;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.json.JsonWriter;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.Stream;

/// The layout of safetensors files to be written, with their tensors. The same tensors and
/// options always give the same bytes. Nothing is written before [#write]. Immutable and safe for
/// use by several threads.
///
/// After the write, a [WeightsCatalogue] of the files has the same tensors and notes, and so does
/// the reference implementation.
public final class NewSafetensors {
  /// The suffixes of formats that are read but not written.
  private static final List<String> OTHER_FILES =
      List.of(".pt", ".pth", ".bin", ".ckpt", ".gguf", ".npy", ".npz");

  private final Path target;
  private final boolean oneFile;
  private final List<NewDataFile> dataFiles;
  private final Optional<NewFile> index;

  /// @param target the file to write to, or the folder, whose only safetensors files these will be
  private NewSafetensors(
      Path target, boolean oneFile, List<NewDataFile> dataFiles, Optional<NewFile> index) {
    this.target = target;
    this.oneFile = oneFile;
    this.dataFiles = List.copyOf(dataFiles);
    this.index = index;
  }

  /// Whether a file's name is one that other formats' files have, so that other programs would not
  /// read safetensors from it.
  public static boolean isNamedLikeAnother(String fileName) {
    String name = fileName.toLowerCase(Locale.ROOT);
    return OTHER_FILES.stream().anyMatch(name::endsWith);
  }

  /// Lays out tensors as one file.
  ///
  /// @param metadata the file's notes (`__metadata__`)
  /// @throws MisuseException if a name comes twice or is `__metadata__`, if a name or note cannot be
  ///     encoded in UTF-8, or if the header would be too long
  public static NewSafetensors file(
      Path file, Collection<NewTensor> tensors, Map<String, String> metadata) {
    WriteRules.check(tensors, metadata);
    NewDataFile dataFile = NewDataFile.of(file, tensors, new TreeMap<>(metadata));
    return new NewSafetensors(file, true, List.of(dataFile), Optional.empty());
  }

  /// Lays out tensors as a folder of data files. The files are filled in the order of the tensors, so that
  /// neighbours stay together.
  ///
  /// @param metadata the notes (`__metadata__`) of every data file
  /// @throws MisuseException as [#file] throws it
  public static NewSafetensors folder(
      Path folder,
      Collection<NewTensor> tensors,
      Map<String, String> metadata,
      DataFileOptions options) {
    WriteRules.check(tensors, metadata);
    SortedMap<String, String> notes = new TreeMap<>(metadata);
    List<List<NewTensor>> cut = cut(tensors, options.fileBytes());
    List<NewDataFile> dataFiles = new ArrayList<>(cut.size());
    for (List<NewTensor> some : cut) {
      String name = fileName(options.stem(), dataFiles.size() + 1, cut.size());
      dataFiles.add(NewDataFile.of(folder.resolve(name), some, notes));
    }
    boolean indexed = dataFiles.size() > 1 || options.indexOfOne();
    Optional<NewFile> index =
        indexed
            ? Optional.of(
                indexFile(
                    folder.resolve(options.stem() + SafetensorsOpener.INDEX_SUFFIX), dataFiles))
            : Optional.empty();
    return new NewSafetensors(folder, false, dataFiles, index);
  }

  /// @param number the file's number, from 1 to `count`
  private static String fileName(String stem, int number, int count) {
    return count == 1
        ? stem + SafetensorsOpener.FILE_SUFFIX
        : String.format(
            Locale.ROOT, "%s-%05d-of-%05d%s", stem, number, count, SafetensorsOpener.FILE_SUFFIX);
  }

  private static List<List<NewTensor>> cut(Collection<NewTensor> tensors, long fileBytes) {
    List<List<NewTensor>> cut = new ArrayList<>();
    List<NewTensor> dataFile = new ArrayList<>();
    cut.add(dataFile);
    long bytes = 0;
    for (NewTensor tensor : tensors) {
      long length = tensor.source().length();
      // If one tensor exceeds `fileBytes`, the difference is negative, and no other tensor joins
      // it.
      if (length > fileBytes - bytes && !dataFile.isEmpty()) {
        dataFile = new ArrayList<>();
        cut.add(dataFile);
        bytes = 0;
      }
      dataFile.add(tensor);
      bytes += length;
    }
    return cut;
  }

  /// Makes the index `{"metadata": {"total_size": n}, "weight_map": {tensor: file, …}}`, with the tensors
  /// ordered by name.
  private static NewFile indexFile(Path file, List<NewDataFile> dataFiles) {
    SortedMap<String, String> weightMap = new TreeMap<>();
    for (NewDataFile dataFile : dataFiles) {
      dataFile.tensors().forEach(tensor -> weightMap.put(tensor.name(), dataFile.name()));
    }
    long totalSize = dataFiles.stream().mapToLong(NewDataFile::dataBytes).sum();
    byte[] text =
        new JsonWriter("the index", SafetensorsIndex.MAX_INDEX_BYTES)
            .indented(json -> {
              json.writeStartObject();
              json.writeObjectFieldStart("metadata");
              json.writeNumberField("total_size", totalSize);
              json.writeEndObject();
              json.writeObjectFieldStart("weight_map");
              for (Map.Entry<String, String> entry : weightMap.entrySet()) {
                json.writeStringField(entry.getKey(), entry.getValue());
              }
              json.writeEndObject();
              json.writeEndObject();
              json.writeRaw('\n');
            });
    return new NewFile(file, List.of(new Memory.OnHost(MemorySegment.ofArray(text))));
  }

  /// The data files in the order of their numbers.
  public List<NewDataFile> dataFiles() {
    return dataFiles;
  }

  /// The `*.safetensors.index.json`, if an index is to be written.
  public Optional<NewFile> index() {
    return index;
  }

  /// All files, in the order in which they must get their names: the index first. If a crash leaves an
  /// index without some data files, readers refuse it; data files without their index would pass for
  /// complete weights.
  public List<NewFile> files() {
    return Stream.concat(index.stream(), dataFiles.stream().map(NewDataFile::file)).toList();
  }

  /// The size of all tensors together, in bytes.
  public long totalBytes() {
    return dataFiles.stream().mapToLong(NewDataFile::dataBytes).sum();
  }

  /// Writes all files, and returns when they are on the disk under their names.
  ///
  /// A single file replaces an existing file of its name, as [GantrySession#write] does. A folder
  /// with an index is refused for a single file, since readers of that folder follow the index,
  /// and would miss the file or find other tensors in it.
  ///
  /// The folder and its parents are made where they are missing. A folder that gets several files must hold
  /// no safetensors files and no index yet, since several files cannot be replaced so that no crash mixes
  /// old and new ones. A failure leaves the folder as it was before. A crash while the files get their
  /// names leaves an index that names data files which are not there, and that readers refuse.
  ///
  /// A crash can also leave temporary files that
  /// [TemporaryName#is][dev.gantry.core.internal.commit.TemporaryName#is(Path)] knows; readers ignore them.
  ///
  /// @return a report on all files, in the order of [#files]
  /// @throws MisuseException if the folder holds files that would be mixed up with the new ones, or another
  ///     writer is at work there
  /// @throws TransferException if the folder cannot be made or read, or [GantrySession#write] fails
  public WriteReport write(GantrySession session, WriteOptions options) {
    SafetensorsOutput output = new SafetensorsOutput(session, files(), options);
    return oneFile ? output.writeFile(target) : output.writeInto(target);
  }
}
