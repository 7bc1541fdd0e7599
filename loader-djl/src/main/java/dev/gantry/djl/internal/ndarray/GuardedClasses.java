// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.ndarray;

import static java.lang.constant.ConstantDescs.CD_long;
import static java.lang.constant.ConstantDescs.CD_void;
import static java.lang.constant.ConstantDescs.INIT_NAME;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.internal.NDArrayEx;
import ai.djl.ndarray.types.DataType;
import ai.djl.pytorch.engine.PtNDManager;
import java.lang.classfile.ClassBuilder;
import java.lang.classfile.ClassFile;
import java.lang.classfile.CodeBuilder;
import java.lang.classfile.TypeKind;
import java.lang.constant.ClassDesc;
import java.lang.constant.MethodTypeDesc;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Predicate;
import java.util.stream.Stream;

/// Makes the subclasses of [GantryNDArray] and [GuardedOperations] at run time. They override some
/// 150 methods of DJL; each calls DJL's own method and passes its result through `result`.
///
/// They also override the method `NDArrayEx getNDArrayInternal()`, which cannot be written in
/// Java. `PtNDArray` declares this method with the return type `PtNDArrayEx`, so an override in
/// Java would have to return a `PtNDArrayEx`, which only DJL's own package can make. A class of
/// ours in that package does not help: under a class loader of its own, it would be in another
/// run-time package, and on the module path, it would split the package. To the JVM, methods with
/// different return types are different methods, so the method that calls on the interface reach
/// can be overridden by itself.
final class GuardedClasses {
  /// Methods that make complex numbers, whose dtype is not one of the eight.
  private static final Set<String> COMPLEX =
      Set.of("complex", "fft", "fft2", "ifft", "ifft2", "rfft");

  /// Methods that change the array itself. Methods whose names end with [#UPDATE] change arrays
  /// among their arguments.
  private static final Set<String> IN_PLACE =
      Set.of(
          "addi",
          "subi",
          "muli",
          "divi",
          "modi",
          "powi",
          "signi",
          "negi",
          "rdivi",
          "rsubi",
          "rmodi",
          "rpowi",
          "set",
          "setScalar");

  /// The end of the names of methods that make an optimizer's step.
  private static final String UPDATE = "Update";

  private static final ClassDesc OPERATIONS = desc(NDArrayEx.class);

  /// Each class is made when it is first needed.
  private static final class OfSafeType {
    static final MethodHandle CONSTRUCTOR =
        array(
            "LoadedNDArray", method -> hasParameter(method) || COMPLEX.contains(method.getName()));
  }

  private static final class OfOtherType {
    static final MethodHandle CONSTRUCTOR = array("GuardedNDArray", _ -> true);
  }

  private static final class Operations {
    static final MethodHandle CONSTRUCTOR = operations();
  }

  private GuardedClasses() {}

  /// Makes the class of arrays if this is the first call, and returns its constructor.
  ///
  /// @param isSafe whether DJL's own methods can work with the arrays
  static MethodHandle makeClass(boolean isSafe) {
    return isSafe ? OfSafeType.CONSTRUCTOR : OfOtherType.CONSTRUCTOR;
  }

  /// @param isSafe whether DJL's own methods can work with the array
  /// @throws IllegalStateException if the manager is closed or capped
  static GantryNDArray array(PtNDManager manager, long handle, DataType dataType, boolean isSafe) {
    MethodHandle constructor = makeClass(isSafe);
    try {
      return (GantryNDArray) constructor.invokeExact(manager, handle, dataType);
    } catch (RuntimeException | Error refused) {
      throw refused;
    } catch (Throwable impossible) {
      throw new AssertionError("no constructor of DJL's arrays throws this", impossible);
    }
  }

  /// @param plain DJL's own operations of `array`
  static NDArrayEx operations(GantryNDArray array, NDArrayEx plain) {
    try {
      return (NDArrayEx) Operations.CONSTRUCTOR.invokeExact(array, plain);
    } catch (Throwable impossible) {
      throw new AssertionError("the constructor only sets fields", impossible);
    }
  }

  /// @param guarded which of the methods that return arrays may return one of a dtype that DJL does
  ///     not know
  private static MethodHandle array(String name, Predicate<Method> guarded) {
    ClassDesc parent = desc(GantryNDArray.class);
    MethodTypeDesc get = MethodTypeDesc.of(OPERATIONS);
    return constructor(
        name,
        GantryNDArray.class,
        MethodTypeDesc.of(CD_void, desc(PtNDManager.class), CD_long, desc(DataType.class)),
        MethodType.methodType(GantryNDArray.class, PtNDManager.class, long.class, DataType.class),
        made -> {
          // public NDArrayEx getNDArrayInternal() { return operations(); }
          made.withMethodBody(
              "getNDArrayInternal",
              get,
              ClassFile.ACC_PUBLIC,
              code -> code.aload(0).invokevirtual(parent, "operations", get).areturn());
          Stream.of(GantryNDArray.class.getMethods())
              .filter(method -> !method.isBridge() && !Modifier.isStatic(method.getModifiers()))
              .filter(method -> isArrays(method.getReturnType()) || isInPlace(method))
              .filter(guarded)
              .forEach(method -> pass(made, method, parent, true));
        });
  }

  private static MethodHandle operations() {
    return constructor(
        "PassedOperations",
        GuardedOperations.class,
        MethodTypeDesc.of(CD_void, desc(GantryNDArray.class), OPERATIONS),
        MethodType.methodType(NDArrayEx.class, GantryNDArray.class, NDArrayEx.class),
        made ->
            Stream.of(GuardedOperations.class.getMethods())
                .filter(method -> method.getDeclaringClass() == NDArrayEx.class)
                .forEach(method ->
                    pass(made, method, desc(GuardedOperations.class), method.isDefault())));
  }

  /// Overrides a method by one that calls the method of the same name and type, and guards the
  /// result: `public X method(A a, …) { requireWritable(); return (X) result(super.method(a, …));
  /// }`.
  ///
  /// @param own whether the parent's method is called, and not the method of its field `plain`
  private static void pass(ClassBuilder made, Method method, ClassDesc parent, boolean own) {
    Class<?> returned = method.getReturnType();
    MethodTypeDesc type =
        MethodTypeDesc.of(
            desc(returned),
            Stream.of(method.getParameterTypes()).map(GuardedClasses::desc).toList());
    made.withMethodBody(
        method.getName(),
        type,
        ClassFile.ACC_PUBLIC,
        code -> {
          requireWritable(code, method, parent);
          if (isArrays(returned)) {
            code.aload(0);
          }
          code.aload(0);
          if (!own) {
            code.getfield(parent, "plain", OPERATIONS);
          }
          for (int i = 0; i < type.parameterCount(); i++) {
            code.loadLocal(TypeKind.from(type.parameterType(i)), code.parameterSlot(i));
          }
          if (own) {
            code.invokespecial(parent, method.getName(), type);
          } else {
            code.invokeinterface(OPERATIONS, method.getName(), type);
          }
          if (isArrays(returned)) {
            ClassDesc general = desc(returned == NDList.class ? NDList.class : NDArray.class);
            code.invokevirtual(parent, "result", MethodTypeDesc.of(general, general))
                .checkcast(type.returnType());
          }
          code.return_(TypeKind.from(type.returnType()));
        });
  }

  private static void requireWritable(CodeBuilder code, Method method, ClassDesc parent) {
    if (isInPlace(method)) {
      code.aload(0).invokevirtual(parent, "requireWritable", MethodTypeDesc.of(CD_void));
    } else if (method.getName().endsWith(UPDATE)) {
      code.aload(1)
          .invokestatic(parent, "requireWritable", MethodTypeDesc.of(CD_void, desc(NDList.class)));
    }
  }

  private static boolean isInPlace(Method method) {
    return IN_PLACE.contains(method.getName());
  }

  /// Defines a class, and finds its constructor as one of the given type.
  private static MethodHandle constructor(
      String name,
      Class<?> parent,
      MethodTypeDesc construct,
      MethodType type,
      Consumer<ClassBuilder> methods) {
    byte[] bytes =
        ClassFile.of()
            .build(
                ClassDesc.of(parent.getPackageName(), name),
                made -> {
                  made.withFlags(
                          ClassFile.ACC_FINAL | ClassFile.ACC_SUPER | ClassFile.ACC_SYNTHETIC)
                      .withSuperclass(desc(parent))
                      .withMethodBody(
                          INIT_NAME, construct, 0, code -> construct(code, parent, construct));
                  methods.accept(made);
                });
    try {
      MethodHandles.Lookup made = MethodHandles.lookup().defineHiddenClass(bytes, true);
      return made.findConstructor(made.lookupClass(), type.changeReturnType(void.class))
          .asType(type);
    } catch (ReflectiveOperationException fault) {
      throw new LinkageError("the class was made here", fault);
    }
  }

  private static void construct(CodeBuilder code, Class<?> parent, MethodTypeDesc type) {
    code.aload(0);
    for (int i = 0; i < type.parameterCount(); i++) {
      code.loadLocal(TypeKind.from(type.parameterType(i)), code.parameterSlot(i));
    }
    code.invokespecial(desc(parent), INIT_NAME, type).return_();
  }

  private static boolean isArrays(Class<?> type) {
    return NDArray.class.isAssignableFrom(type) || type == NDList.class;
  }

  /// Whether a method takes a dtype or other arrays, which may have any dtype.
  private static boolean hasParameter(Method method) {
    return Stream.of(method.getParameterTypes())
        .anyMatch(type -> isArrays(type) || type == DataType.class);
  }

  private static ClassDesc desc(Class<?> type) {
    return type.describeConstable().orElseThrow();
  }
}
