// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.ndarray;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.fail;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.internal.NDArrayEx;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.ndarray.types.SparseFormat;
import ai.djl.nn.recurrent.RNN;
import dev.gantry.core.DType;
import dev.gantry.djl.internal.torch.PyTorch;
import dev.gantry.djl.internal.torch.Releases;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Function;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Calls all methods of DJL's interface on arrays of F32 and of each dtype that DJL does not know,
/// so that the tests notice a method that a new version of DJL adds and the guard does not cover.
/// No call may end the JVM. An array that an array of an unknown dtype returns must be guarded; an
/// array that another array returns must be guarded, or be DJL's own and have a dtype that DJL
/// knows.
@Tag("beside")
class EveryMethodTest {
  /// Whether `PYTORCH_LIBRARY_PATH` names another libtorch than the class path's, as in the
  /// profile `libtorch-2.5.1`.
  private static final boolean OTHER_LIBTORCH = System.getenv("PYTORCH_LIBRARY_PATH") != null;

  /// A type that DJL's native code accepts, and a type that it must not get.
  private static final List<DataType> TYPES = List.of(DataType.FLOAT32, DataType.BFLOAT16);

  @ParameterizedTest
  @EnumSource(
      value = DType.class,
      names = {"BF16", "I16", "U16", "U32", "U64", "C64", "F32"})
  void noMethodOfAnArrayLeavesTheGuard(DType dtype) {
    int returned = callAll(NDArray.class, dtype, dtype, array -> array);
    assertThat(returned).isGreaterThan(dtype == DType.BF16 ? 150 : 50);
  }

  @ParameterizedTest
  @EnumSource(
      value = DType.class,
      names = {"BF16", "I16", "U16", "U32", "U64", "C64", "F32"})
  void noOperationOfABlockLeavesTheGuard(DType dtype) {
    int returned = callAll(NDArrayEx.class, dtype, dtype, NDArray::getNDArrayInternal);
    assertThat(returned).isGreaterThan(dtype == DType.BF16 ? 20 : 5);
  }

  /// The results have the operand's type, or a type that can hold both.
  @ParameterizedTest
  @EnumSource(
      value = DType.class,
      names = {"F32", "I64", "U8", "BOOL"})
  void anOperandOfAnotherTypeDoesNotLeaveTheGuard(DType dtype) {
    assertThat(callAll(NDArray.class, dtype, DType.BF16, array -> array)).isGreaterThan(50);
    assertThat(callAll(NDArrayEx.class, dtype, DType.BF16, NDArray::getNDArrayInternal))
        .isGreaterThan(5);
  }

  /// Returns how many calls returned an array. The other calls threw an exception, which is
  /// allowed.
  private static int callAll(
      Class<?> type, DType dtype, DType operandType, Function<NDArray, Object> target) {
    Set<String> escaped = new TreeSet<>();
    int returned = 0;
    for (Method method : type.getMethods()) {
      if (Modifier.isStatic(method.getModifiers())) {
        continue;
      }
      boolean namesType = List.of(method.getParameterTypes()).contains(DataType.class);
      for (DataType named : namesType ? TYPES : TYPES.subList(0, 1)) {
        for (long[] dimensions : new long[][] {{2, 2}, {}, {1, 3, 4, 4}}) {
          WrappedMemory memory = new WrappedMemory();
          // The manager is used for these arrays only, because one of the methods detaches them
          // from it. It is on the CPU, because a wrong index fails an assertion in a GPU's kernel,
          // after which the process can no longer use that GPU.
          try (NDManager manager = NDManager.newBaseManager(Device.cpu());
              NDArray array = memory.count(manager, dtype, dimensions);
              NDArray operand = memory.count(manager, operandType, dimensions)) {
            Object[] arguments = new Object[method.getParameterCount()];
            for (int i = 0; i < arguments.length; i++) {
              arguments[i] = argument(method.getParameterTypes()[i], operand, manager, named);
            }
            Object result = method.invoke(target.apply(array), arguments);
            if (result instanceof NDArray one) {
              returned++;
              note(escaped, method, dtype, one);
            } else if (result instanceof NDList many) {
              returned++;
              many.forEach(one -> note(escaped, method, dtype, one));
            }
          } catch (InvocationTargetException refused) {
            // DJL's own checks may be assert statements, and its library for another libtorch may
            // lack functions.
            Throwable cause = refused.getCause();
            if (!OTHER_LIBTORCH || !(cause instanceof UnsatisfiedLinkError)) {
              assertThat(cause)
                  .as(method.toString())
                  .isInstanceOfAny(RuntimeException.class, AssertionError.class);
            }
          } catch (IllegalAccessException hidden) {
            fail(hidden);
          }
        }
      }
    }
    assertThat(escaped).isEmpty();
    assertThat(Releases.pending()).isZero();
    return returned;
  }

  private static void note(Set<String> escaped, Method method, DType dtype, NDArray result) {
    boolean isDjlsOwn =
        PyTorch.isSafe(PyTorch.dataType(dtype).orElseThrow())
            && PyTorch.isSafe(result.getDataType());
    if (!(result instanceof GantryNDArray) && !isDjlsOwn) {
      escaped.add(method.toString());
    }
  }

  private static Object argument(
      Class<?> type, NDArray operand, NDManager manager, DataType named) {
    if (type == NDArray.class) {
      return operand;
    } else if (type == NDList.class) {
      return new NDList(operand);
    } else if (type == NDManager.class) {
      return manager;
    } else if (type == Number.class) {
      return 2;
    } else if (type == int.class) {
      return 1;
    } else if (type == long.class) {
      return 1L;
    } else if (type == float.class) {
      return 1f;
    } else if (type == double.class) {
      return 1d;
    } else if (type == boolean.class) {
      return true;
    } else if (type == int[].class) {
      return new int[] {0};
    } else if (type == long[].class) {
      return new long[] {1};
    } else if (type == float[].class) {
      return new float[] {1};
    } else if (type == double[].class) {
      return new double[] {1};
    } else if (type == byte[].class) {
      return new byte[] {1};
    } else if (type == Integer.class) {
      return 0;
    } else if (type == DataType.class) {
      return named;
    } else if (type == Shape.class) {
      return operand.getShape();
    } else if (type == Device.class) {
      return Device.cpu();
    } else if (type == NDIndex.class) {
      return new NDIndex("...");
    } else if (type == SparseFormat.class) {
      return SparseFormat.COO;
    } else if (type == RNN.Activation.class) {
      return RNN.Activation.RELU;
    } else if (type == Charset.class) {
      return StandardCharsets.UTF_8;
    } else if (type == String.class) {
      return "0";
    } else if (type == Buffer.class || type == ByteBuffer.class) {
      return operand.toByteBuffer();
    } else if (type == Object[].class) {
      return new Object[0];
    } else if (type == List.class) {
      return List.of(1f);
    } else if (type == Function.class) {
      return Function.identity();
    } else if (type == Object.class) {
      return operand;
    }
    throw new AssertionError("no argument for " + type);
  }
}
