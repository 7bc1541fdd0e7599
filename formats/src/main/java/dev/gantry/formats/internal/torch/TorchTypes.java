// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.torch;

import dev.gantry.core.DType;
import dev.gantry.formats.internal.torch.PickleValue.Global;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/// The functions and classes that pickles of PyTorch may name: those that `torch.load` allows with
/// `weights_only=True`.
final class TorchTypes {
  static final String UTILS = "torch._utils.";
  static final String FROM_TYPE = "torch._tensor._rebuild_from_type_v2";
  static final String SIZE = "torch.Size";

  /// The dtypes by PyTorch's names. A tensor whose dtype has another name is refused.
  private static final Map<String, DType> DTYPES =
      Map.ofEntries(
          Map.entry("float64", DType.F64),
          Map.entry("float32", DType.F32),
          Map.entry("float16", DType.F16),
          Map.entry("bfloat16", DType.BF16),
          Map.entry("int64", DType.I64),
          Map.entry("int32", DType.I32),
          Map.entry("int16", DType.I16),
          Map.entry("int8", DType.I8),
          Map.entry("uint64", DType.U64),
          Map.entry("uint32", DType.U32),
          Map.entry("uint16", DType.U16),
          Map.entry("uint8", DType.U8),
          Map.entry("bool", DType.BOOL),
          Map.entry("complex64", DType.C64),
          Map.entry("float8_e4m3fn", DType.F8_E4M3),
          Map.entry("float8_e5m2", DType.F8_E5M2),
          Map.entry("float8_e4m3fnuz", DType.F8_E4M3FNUZ),
          Map.entry("float8_e5m2fnuz", DType.F8_E5M2FNUZ),
          Map.entry("float8_e8m0fnu", DType.F8_E8M0));

  /// The classes of storages that have a dtype.
  private static final Map<String, String> STORAGES =
      Map.ofEntries(
          Map.entry("DoubleStorage", "float64"),
          Map.entry("FloatStorage", "float32"),
          Map.entry("HalfStorage", "float16"),
          Map.entry("BFloat16Storage", "bfloat16"),
          Map.entry("LongStorage", "int64"),
          Map.entry("IntStorage", "int32"),
          Map.entry("ShortStorage", "int16"),
          Map.entry("CharStorage", "int8"),
          Map.entry("ByteStorage", "uint8"),
          Map.entry("BoolStorage", "bool"),
          Map.entry("ComplexFloatStorage", "complex64"),
          Map.entry("UntypedStorage", "uint8"),
          Map.entry("ComplexDoubleStorage", "complex128"),
          Map.entry("QInt8Storage", "qint8"),
          Map.entry("QUInt8Storage", "quint8"),
          Map.entry("QInt32Storage", "qint32"),
          Map.entry("QUInt4x2Storage", "quint4x2"),
          Map.entry("QUInt2x4Storage", "quint2x4"));

  /// The functions and classes whose values are no tensors; a reader ignores these values.
  private static final Set<String> HARMLESS =
      Set.of(
          SIZE,
          "torch.device",
          "torch.serialization._get_layout",
          "_codecs.encode",
          "builtins.bytearray",
          "builtins.set",
          "builtins.frozenset",
          "builtins.complex");

  /// The classes of tensors, which pickles name in addition to the functions that rebuild
  /// tensors.
  private static final Set<String> TENSORS =
      Set.of(
          "torch.Tensor", "torch.nn.parameter.Parameter", "torch.nn.parameter.Buffer", FROM_TYPE);

  private TorchTypes() {}

  static boolean isKnown(Global global) {
    String path = global.path();
    return isHarmless(global)
        || TENSORS.contains(path)
        || path.startsWith(UTILS + "_rebuild_")
        || path.equals("collections.OrderedDict")
        || path.equals("collections.Counter")
        || isStorage(global)
        || (global.module().equals("torch") && isPlainName(global.name()));
  }

  static boolean isHarmless(Global global) {
    return HARMLESS.contains(global.path());
  }

  /// Whether a name of the module `torch` means a dtype or another constant, such as
  /// `per_tensor_affine`, and no function.
  private static boolean isPlainName(String name) {
    return DTYPES.containsKey(name)
        || STORAGES.containsValue(name)
        || name.matches("u?int[1-7]|complex32|bits[0-9x]+|float4_e2m1fn_x2|strided|per_\\w+");
  }

  private static boolean isStorage(Global global) {
    return STORAGES.containsKey(global.name())
        && switch (global.module()) {
          case "torch", "torch.storage", "torch.cuda" -> true;
          default -> false;
        };
  }

  /// The name of the dtype of a storage's elements; empty if the value is no class of storages.
  static Optional<String> storageType(PickleValue value) {
    return value instanceof Global global && isStorage(global)
        ? Optional.ofNullable(STORAGES.get(global.name()))
        : Optional.empty();
  }

  static Optional<DType> dtype(String name) {
    return Optional.ofNullable(DTYPES.get(name));
  }

  /// The name that PyTorch gives a dtype; empty if it has no such dtype.
  static String name(DType dtype) {
    return DTYPES.entrySet().stream()
        .filter(entry -> entry.getValue() == dtype)
        .map(Map.Entry::getKey)
        .findFirst()
        .orElse("");
  }

  /// Returns the name of a dtype's storage class; empty if PyTorch keeps the dtype in untyped
  /// storages.
  static String storage(DType dtype) {
    String name = name(dtype);
    return STORAGES.entrySet().stream()
        .filter(entry -> entry.getValue().equals(name) && !entry.getKey().startsWith("Untyped"))
        .map(Map.Entry::getKey)
        .findFirst()
        .orElse("");
  }
}
