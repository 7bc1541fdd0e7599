// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import dev.gantry.cli.internal.convert.ArchivesToShards;
import dev.gantry.cli.internal.convert.DcpConversion;
import dev.gantry.cli.internal.convert.FieldType;
import dev.gantry.cli.internal.convert.ImageFolder;
import dev.gantry.cli.internal.convert.ImageSize;
import dev.gantry.cli.internal.convert.ImagesToShards;
import dev.gantry.cli.internal.convert.RecordFields;
import dev.gantry.cli.internal.convert.RecordsToShards;
import dev.gantry.cli.internal.convert.ShardsToRecords;
import dev.gantry.cli.internal.convert.WeightsConversion;
import dev.gantry.cli.internal.input.Input;
import dev.gantry.cli.internal.output.WrittenFiles;
import dev.gantry.cli.internal.parquet.ParquetRows;
import dev.gantry.cli.internal.parquet.ParquetToShards;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.images.ImageDecoding;
import dev.gantry.formats.shards.ShardOptions;
import dev.gantry.formats.shards.ShardSet;
import dev.gantry.formats.spi.WeightsCatalogue;
import dev.gantry.formats.tfrecord.Compression;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/// `convert`: writes the same tensors or samples as files of another format. It streams their
/// bytes through a few buffers, so files may be larger than memory.
@Command(
    name = "convert",
    description = {
      "Writes weights as safetensors, aligned: to one file, or to a folder of files with an index.",
      "Writes TFRecord as raw tensor shards, and raw tensor shards as TFRecord.",
      "Writes a folder with a folder of JPEG and PNG pictures for each class as raw tensor shards.",
      "Writes WebDataset tar archives as raw tensor shards, with their pictures decoded.",
      "Writes texts as raw tensor shards of their tokens, and rows of Parquet as raw tensor shards."
    })
final class ConvertCommand extends ReportCommand {
  /// The formats in which weights are written.
  enum Target {
    SAFETENSORS,
    DCP
  }

  private static final String TO = "--to";
  private static final String SHARD_BYTES = "--shard-bytes";
  private static final String SAMPLES = "--samples-per-shard";
  private static final String FIELD = "--field";
  private static final String PAD = "--pad";
  private static final String SIZE = "--size";
  private static final String STRETCH = "--stretch";
  private static final String COLUMNS = "--columns";
  private static final String SHARDS = "--shards";
  private static final String COMPRESSION = "--compression";

  /// The kinds of errors in records that `--pad` prevents.
  private static final Set<String> CURED_BY_PAD =
      Set.of("missing-feature", "unknown-feature", "wrong-length");

  /// The options that apply only to some formats of the input.
  private static final Set<String> SPECIAL =
      Set.of(
          TO,
          SHARD_BYTES,
          SAMPLES,
          FIELD,
          PAD,
          SIZE,
          STRETCH,
          COLUMNS,
          SHARDS,
          COMPRESSION,
          TextOptions.TOKENS,
          TextOptions.TOKENIZER,
          TextOptions.TEXT,
          TextOptions.EOS,
          TextOptions.U16);

  @Parameters(
      arity = "1..*",
      paramLabel = "IN OUT",
      hideParamSyntax = true,
      description = {
        "IN: " + Input.DESCRIPTION + " Texts, Parquet files and tar archives may be several.",
        "OUT: for weights, one file if the name ends in .safetensors, otherwise a folder without"
            + " safetensors files; either may be an s3 URL. For raw tensor shards, a TFRecord file."
            + " For all other inputs, a folder with neither shards nor weights."
      })
  private List<Location> paths;

  @Option(
      names = TO,
      paramLabel = "KIND",
      description =
          "Weights IN: the format to write, safetensors (the default) or dcp, a folder of"
              + " torch.distributed.checkpoint.")
  private @Nullable Target target;

  @Option(
      names = SHARD_BYTES,
      paramLabel = "N",
      description =
          "The most bytes of tensors or samples in one file of a folder; by default 5 GB of"
              + " tensors, 256 MiB of samples.")
  private @Nullable Long shardBytes;

  @Option(
      names = SAMPLES,
      paramLabel = "N",
      description =
          "TFRecord, Parquet, pictures, tar archives or texts IN: the number of samples in each raw"
              + " tensor shard except the last.")
  private @Nullable Long samplesPerShard;

  @Option(
      names = FIELD,
      paramLabel = "NAME=DTYPE[SHAPE]",
      converter = FieldType.Converter.class,
      description =
          "TFRecord IN: the dtype and shape of the field that a feature becomes, such as"
              + " image=U8[28,28]. Bytes become U8, floats F32 and integers I64 by default, with"
              + " one axis; a single number becomes a scalar.")
  private List<FieldType> fieldTypes = new ArrayList<>();

  @Option(
      names = PAD,
      description =
          "TFRecord IN: pad shorter and missing features with 0 to the longest length, and write"
              + " the lengths as a field NAME_length; IN is read twice. Without this option,"
              + " features of different lengths are refused. Tar archives IN: the same for members."
              + " Texts IN: pad the last block instead of dropping it.")
  private boolean pad;

  @Option(
      names = SIZE,
      paramLabel = "H[xW]",
      converter = ImageSize.class,
      description =
          "Pictures IN, also in tar archives: the height and width of the decoded pictures, such as"
              + " 224 or 224x320. Pictures of other proportions are cropped.")
  private @Nullable ImageDecoding size;

  @Option(
      names = STRETCH,
      description = "Pictures IN: change the pictures' proportions instead of cropping them.")
  private boolean stretch;

  @Option(
      names = COLUMNS,
      paramLabel = "NAME",
      split = ",",
      description =
          "Parquet IN: the columns that become fields. Tar archives IN: the extensions that become"
              + " fields. All of them become fields by default.")
  private List<String> columns = new ArrayList<>();

  @Mixin private TextOptions texts;

  @Option(
      names = SHARDS,
      paramLabel = "N",
      description = "Raw tensor shards IN: write N files, OUT-00000-of-0000N and so on.")
  private @Nullable Integer shards;

  @Option(
      names = COMPRESSION,
      paramLabel = "KIND",
      description =
          "Raw tensor shards IN: the compression of the TFRecord files: none (the default), gzip or"
              + " zlib.")
  private @Nullable Compression compression;

  @Override
  void checkOptions() {
    if (paths.size() < 2) {
      throw new MisuseException("convert needs IN and OUT (was only " + input() + ")");
    }
    if (paths.size() > 2 && !texts.given() && !isParquet() && !areArchives()) {
      throw new MisuseException(
          "only texts (with "
              + TextOptions.TOKENS
              + "), Parquet files and tar archives may be several files");
    }
    if (stretch && size == null) {
      throw new MisuseException(
          STRETCH + " needs " + SIZE + ": only decoded pictures are stretched");
    }
    if (shardBytes != null) {
      MisuseException.requireRange(SHARD_BYTES, shardBytes, 1, Long.MAX_VALUE);
    }
    if (samplesPerShard != null) {
      MisuseException.requireRange(SAMPLES, samplesPerShard, 1, ShardOptions.MAX_SAMPLES_PER_SHARD);
    }
  }

  @Override
  WrittenFiles report(GantrySession session) throws IOException {
    if (texts.given()) {
      allow(
          "texts",
          Set.of(
              SHARD_BYTES,
              SAMPLES,
              PAD,
              TextOptions.TOKENS,
              TextOptions.TOKENIZER,
              TextOptions.TEXT,
              TextOptions.EOS,
              TextOptions.U16));
      return texts
          .conversion(localInputs(), localOutput(), pad)
          .run(session, RecordsToShards.options(shardBytes, samplesPerShard));
    }
    if (size != null && ImageFolder.mayBeOne(input())) {
      allow("pictures", Set.of(SHARD_BYTES, SAMPLES, SIZE, STRETCH));
      return images(session, Objects.requireNonNull(decoding()));
    }
    if (isParquet()) {
      allow("Parquet", Set.of(SHARD_BYTES, SAMPLES, COLUMNS));
      return new ParquetToShards(localInputs(), columns, localOutput())
          .run(session, RecordsToShards.options(shardBytes, samplesPerShard));
    }
    if (input() instanceof Location.Local(Path path, _) && ImageFolder.isOne(path)) {
      throw new MisuseException(
          "IN is a folder of pictures; "
              + SIZE
              + " must give the height and width of the decoded pictures");
    }
    if (TextOptions.areTexts(input().fileName())) {
      throw texts.missing();
    }
    return switch (Input.open(session, input())) {
      case Input.Weights(WeightsCatalogue weights) -> {
        if (target == Target.DCP) {
          allow("a folder of DCP", Set.of(TO));
          yield new DcpConversion(weights, localOutput()).run(session);
        }
        allow("weights", Set.of(TO, SHARD_BYTES));
        yield new WeightsConversion(weights, input(), output(), shardBytes).run(session);
      }
      case Input.Records(List<Location> files) -> {
        allow("TFRecord", Set.of(SHARD_BYTES, SAMPLES, FIELD, PAD));
        yield records(session, files);
      }
      case Input.Shards(ShardSet set) -> {
        allow("raw tensor shards", Set.of(SHARDS, COMPRESSION));
        Compression chosen = compression == null ? Compression.NONE : compression;
        yield new ShardsToRecords(set, localOutput(), shards, chosen).run(session);
      }
      case Input.Archives _ -> {
        List<Location> files =
            inputs().stream().flatMap(path -> Input.archives(session, path).stream()).toList();
        allow("tar archives", Set.of(SHARD_BYTES, SAMPLES, SIZE, STRETCH, COLUMNS, PAD));
        yield new ArchivesToShards(
                files, columns, Optional.ofNullable(decoding()), pad, localOutput())
            .run(session, RecordsToShards.options(shardBytes, samplesPerShard));
      }
    };
  }

  private @Nullable ImageDecoding decoding() {
    return size != null && stretch ? size.stretch() : size;
  }

  private WrittenFiles images(GantrySession session, ImageDecoding decoding) throws IOException {
    Path folder = input().path();
    Path out = localOutput();
    if (out.toAbsolutePath().normalize().startsWith(folder.toAbsolutePath().normalize())) {
      throw new MisuseException(
          "OUT must not lie in IN, whose folders are classes of pictures (was " + out + ")");
    }
    return new ImagesToShards(ImageFolder.open(folder), decoding, out)
        .run(session, RecordsToShards.options(shardBytes, samplesPerShard));
  }

  private WrittenFiles records(GantrySession session, List<Location> files) throws IOException {
    RecordFields fields = new RecordFields(files, fieldTypes, pad);
    try {
      return new RecordsToShards(files, fields, localOutput())
          .run(session, RecordsToShards.options(shardBytes, samplesPerShard));
    } catch (MalformedFileException fault) {
      if (!pad && CURED_BY_PAD.contains(fault.kind())) {
        throw new MalformedFileException(
            fault.file(),
            fault.offset(),
            fault.kind(),
            fault.detail() + "; " + PAD + " fills shorter and missing features with 0");
      }
      throw fault;
    }
  }

  /// Whether the input is Parquet, by the names of the files.
  private boolean isParquet() {
    return inputs().stream().allMatch(path -> path.fileName().endsWith(ParquetRows.SUFFIX));
  }

  /// Whether the input is several tar archives, by their names.
  private boolean areArchives() {
    return inputs().stream().allMatch(path -> ImageFolder.isArchive(path.fileName()));
  }

  private List<Location> inputs() {
    return paths.subList(0, paths.size() - 1);
  }

  private List<Path> localInputs() {
    List<Path> files = new ArrayList<>();
    for (Location path : inputs()) {
      if (!(path instanceof Location.Local(Path file, _))) {
        throw new MisuseException("IN must be local files (was " + path + ")");
      }
      files.add(file);
    }
    return List.copyOf(files);
  }

  private Path localOutput() {
    if (output() instanceof Location.Local(Path path, _)) {
      return path;
    }
    throw new MisuseException(
        "OUT must be a local path, since only safetensors are written elsewhere (was "
            + output()
            + ")");
  }

  private Location input() {
    return paths.getFirst();
  }

  private Location output() {
    return paths.getLast();
  }

  /// @throws MisuseException if an option is given that does not apply to this input
  private void allow(String kind, Set<String> allowed) {
    Set<String> given = new TreeSet<>();
    for (OptionSpec option : spec.commandLine().getParseResult().matchedOptions()) {
      given.add(option.longestName());
    }
    given.retainAll(SPECIAL);
    given.removeAll(allowed);
    if (!given.isEmpty()) {
      throw new MisuseException(
          String.join(", ", given) + " must not be given for " + kind + " (IN is " + input() + ")");
    }
  }
}
