// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import ai.djl.nn.Parameter;
import ai.djl.nn.SymbolBlock;
import ai.djl.training.initializer.Initializer;
import dev.gantry.core.MisuseException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/// Initialises a block without allocating arrays. Afterwards the block and its children know the
/// shapes of their inputs, with which some blocks compute, and each parameter knows its own shape.
/// Parameters that have an array keep it.
///
/// [#close] removes the shape of parameters that still have no array, unless they had a shape
/// before.
public final class BlockShapes implements AutoCloseable {
  private record Before(Parameter parameter, Initializer initializer, boolean hadShape) {
    /// Gives the parameter an array of one element, broadcast to its shape, because DJL cannot
    /// initialise a parameter without an array.
    void initializeEmpty() {
      parameter.setInitializer((manager, shape, _) -> {
        try (NDArray element = manager.create(0f)) {
          return element.broadcast(shape);
        }
      });
    }

    void undo() {
      parameter.close();
      parameter.setInitializer(initializer);
    }

    void forgetShape() {
      if (!hadShape && !parameter.isInitialized()) {
        parameter.setShape(null);
      }
    }
  }

  private final List<Before> before = new ArrayList<>();

  private BlockShapes(Block block) {
    for (Parameter parameter : block.getParameters().values()) {
      if (!parameter.isInitialized()) {
        before.add(new Before(parameter, parameter.getInitializer(), parameter.getShape() != null));
      }
    }
  }

  /// @throws MisuseException if the block is not initialised and there are no shapes, or it cannot
  ///     be initialised for them
  public static BlockShapes of(NDManager manager, Block block, Shape... inputShapes) {
    BlockShapes shapes = new BlockShapes(block);
    if (isComplete(block)) {
      return shapes;
    }
    if (inputShapes.length == 0) {
      throw new MisuseException(
          "the block is not initialised: the load needs the shapes of its inputs,"
              + " such as new Shape(1, 64), so that the block can predict afterwards");
    }
    boolean complete = false;
    try {
      shapes.before.forEach(Before::initializeEmpty);
      block.initialize(manager, DataType.FLOAT32, inputShapes);
      complete = true;
      return shapes;
    } catch (RuntimeException refused) {
      MisuseException misuse =
          new MisuseException(
              "the block cannot be initialised for inputs of "
                  + Arrays.toString(inputShapes)
                  + ": "
                  + (refused instanceof IndexOutOfBoundsException
                      ? "it takes more inputs, or inputs with more axes"
                      : refused));
      misuse.initCause(refused);
      throw misuse;
    } finally {
      shapes.before.forEach(Before::undo);
      if (!complete) {
        shapes.close();
      }
    }
  }

  /// Whether the block has all shapes that it needs to predict. A block that an engine loaded,
  /// such as a TorchScript module, always has them, even if it reports that it is not initialised.
  public static boolean isComplete(Block block) {
    return block.isInitialized() || block instanceof SymbolBlock;
  }

  @Override
  public void close() {
    before.forEach(Before::forgetShape);
  }
}
