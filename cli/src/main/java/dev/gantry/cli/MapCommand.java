// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import ai.djl.ndarray.types.Shape;
import dev.gantry.cli.internal.input.Input;
import dev.gantry.cli.internal.map.BlockClass;
import dev.gantry.cli.internal.map.MapReport;
import dev.gantry.cli.internal.output.Report;
import dev.gantry.core.Location;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.internal.mapping.BlockMap;
import dev.gantry.djl.internal.mapping.Named;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.io.File;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import picocli.CommandLine.Command;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.TypeConversionException;

/// `map`: finds which tensor fills each parameter of a block.
@Command(
    name = "map",
    description =
        "Prints a block's parameters beside the tensors of weights, matches them if shapes and"
            + " names are unambiguous, and prints rules for the names, to be pasted into code.")
final class MapCommand extends ReportCommand {
  @Parameters(
      paramLabel = "FOLDER",
      description = "Weights: a folder, a file or an index.json, or an http or https URL.")
  private Location folder;

  @Option(
      names = "--block",
      paramLabel = "CLASS",
      required = true,
      description =
          "The block: a class with a constructor without arguments, or CLASS#METHOD for a static"
              + " method without arguments.")
  private String block;

  @Option(
      names = "--input",
      paramLabel = "SHAPE",
      converter = ShapeConverter.class,
      description =
          "The shape of an input of the block, such as 1,128; repeatable. Without it, the"
              + " parameters' shapes may be unknown.")
  private List<Shape> inputs = List.of();

  @Option(
      names = "--classpath",
      paramLabel = "PATH",
      description = "Jars and folders with the block's class, separated as on Java's class path.")
  private String classPath = "";

  @Override
  Report report(GantrySession session) {
    try (BlockClass classes = new BlockClass(paths())) {
      WeightsCatalogue weights = Input.weights(session, folder);
      return new MapReport(
          BlockMap.of(
              Named.parameters(classes.make(block), inputs), Named.tensors(weights.tensors())));
    }
  }

  private List<Path> paths() {
    return Stream.of(classPath.split(File.pathSeparator))
        .filter(path -> !path.isEmpty())
        .map(Path::of)
        .toList();
  }

  /// Reads a shape such as `1,128`.
  static final class ShapeConverter implements ITypeConverter<Shape> {
    @Override
    public Shape convert(String text) {
      try {
        long[] sizes =
            Stream.of(text.split(",", -1))
                .mapToLong(size -> Long.parseLong(size.strip()))
                .toArray();
        if (LongStream.of(sizes).allMatch(size -> size > 0)) {
          return new Shape(sizes);
        }
      } catch (NumberFormatException _) {
        // Text that is not a number is refused below, together with impossible sizes.
      }
      throw new TypeConversionException(
          "must be sizes of at least 1, such as 1,128 (was " + text + ")");
    }
  }
}
