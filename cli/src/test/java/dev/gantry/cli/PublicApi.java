// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import java.lang.reflect.Constructor;
import java.lang.reflect.Executable;
import java.lang.reflect.Field;
import java.lang.reflect.GenericArrayType;
import java.lang.reflect.Member;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.Type;
import java.lang.reflect.TypeVariable;
import java.lang.reflect.WildcardType;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// The public types of the four libraries, as compiled: the types that a user's program can name.
///
/// Each member's signature is one line, in which types have simple names.
final class PublicApi {
  private static final List<String> LIBRARIES =
      List.of("dev.gantry.core", "dev.gantry.formats", "dev.gantry.djl", "dev.gantry.models");

  private static final String MODELS = "dev.gantry.models";

  /// The package of the classes that are generated from TensorFlow's message definitions.
  private static final String GENERATED = "dev.gantry.formats.tfrecord.proto";

  private final List<Class<?>> types;

  private PublicApi(List<Class<?>> types) {
    this.types = types;
  }

  /// Reads the class files of the four libraries; runs none of their code.
  static PublicApi read() {
    JavaClasses compiled =
        new ClassFileImporter()
            .withImportOption(new ImportOption.DoNotIncludeTests())
            .importPackages(LIBRARIES);
    return new PublicApi(
        compiled.stream()
            .filter(type -> !isInternal(type.getPackageName()))
            .filter(type -> !type.getPackageName().startsWith(GENERATED))
            .map(JavaClass::reflect)
            .filter(PublicApi::isVisible)
            .sorted(Comparator.comparing(Class::getName))
            .collect(Collectors.toList()));
  }

  /// The part of the list that users of the loader meet, without the types of models and of
  /// service providers.
  PublicApi ofLoader() {
    return filtered(type -> !isSpi(type) && !isOfModels(type));
  }

  PublicApi ofModels() {
    return filtered(PublicApi::isOfModels);
  }

  private static boolean isOfModels(Class<?> type) {
    return type.getPackageName().startsWith(MODELS);
  }

  PublicApi ofSpi() {
    return filtered(PublicApi::isSpi);
  }

  private PublicApi filtered(Predicate<Class<?>> condition) {
    return new PublicApi(types.stream().filter(condition).collect(Collectors.toList()));
  }

  long topLevelTypes() {
    return types.stream().filter(type -> type.getEnclosingClass() == null).count();
  }

  /// Returns a line for each type, followed by an indented line for each of its members.
  List<String> lines() {
    List<String> lines = new ArrayList<>();
    for (Class<?> type : types) {
      lines.add(type.getName() + " " + headerOf(type));
      members(type).map(member -> "  " + describe(type, member)).sorted().forEach(lines::add);
    }
    return lines;
  }

  /// Returns `Type: InternalType` for each internal type that a public signature names.
  Set<String> leaks() {
    Set<String> leaks = new TreeSet<>();
    for (Class<?> type : types) {
      signatureTypes(type)
          .flatMap(PublicApi::classesIn)
          .filter(named -> isInternal(named.getPackageName()))
          .forEach(named -> leaks.add(name(type) + ": " + name(named)));
    }
    return leaks;
  }

  static boolean isInternal(String packageName) {
    return packageName.startsWith("dev.gantry.")
        && Arrays.asList(packageName.split("\\.")).contains("internal");
  }

  private static boolean isSpi(Class<?> type) {
    return Arrays.asList(type.getPackageName().split("\\.")).contains("spi");
  }

  private static boolean isVisible(Class<?> type) {
    for (Class<?> each = type; each != null; each = each.getEnclosingClass()) {
      if (!isVisible(each.getModifiers()) || each.isAnonymousClass() || each.isLocalClass()) {
        return false;
      }
    }
    return true;
  }

  private static boolean isVisible(int modifiers) {
    return Modifier.isPublic(modifiers) || Modifier.isProtected(modifiers);
  }

  private static String headerOf(Class<?> type) {
    String header = kindOf(type) + variables(type.getTypeParameters());
    Type superclass = type.getGenericSuperclass();
    if (superclass != null
        && superclass != Object.class
        && !type.isEnum()
        && !(superclass == Record.class)) {
      header += " extends " + name(superclass);
    }
    if (type.getGenericInterfaces().length > 0) {
      header += (type.isInterface() ? " extends " : " implements ");
      header +=
          Arrays.stream(type.getGenericInterfaces())
              .map(PublicApi::name)
              .collect(Collectors.joining(", "));
    }
    return header;
  }

  private static String kindOf(Class<?> type) {
    if (type.isRecord()) {
      return Arrays.stream(type.getRecordComponents())
          .map(each -> name(each.getGenericType()) + " " + each.getName())
          .collect(Collectors.joining(", ", "record(", ")"));
    }
    if (type.isEnum()) {
      return "enum";
    }
    String kind = type.isInterface() ? "interface" : "class";
    if (type.isSealed()) {
      return "sealed " + kind;
    }
    if (Modifier.isFinal(type.getModifiers())) {
      return "final " + kind;
    }
    return Modifier.isAbstract(type.getModifiers()) && !type.isInterface()
        ? "abstract " + kind
        : kind;
  }

  /// Returns the members that the type declares itself, without those that each record, enum or
  /// object has.
  private static Stream<Member> members(Class<?> type) {
    return Stream.<Member>concat(
            Stream.concat(
                Arrays.stream(type.getDeclaredFields()),
                Arrays.stream(type.getDeclaredConstructors())),
            Arrays.stream(type.getDeclaredMethods()))
        .filter(member -> isVisible(member.getModifiers()) && !member.isSynthetic())
        .filter(member -> !isImplied(type, member));
  }

  private static boolean isImplied(Class<?> type, Member member) {
    if (!(member instanceof Executable executable)) {
      return false;
    }
    List<Class<?>> parameters = List.of(executable.getParameterTypes());
    if (type.isRecord()) {
      List<Class<?>> components =
          Arrays.stream(type.getRecordComponents())
              .<Class<?>>map(RecordComponent::getType)
              .collect(Collectors.toList());
      if (member instanceof Constructor && parameters.equals(components)) {
        return true;
      }
      if (parameters.isEmpty()
          && Arrays.stream(type.getRecordComponents())
              .anyMatch(each -> each.getName().equals(member.getName()))) {
        return true;
      }
    }
    if (type.isEnum() && Modifier.isStatic(member.getModifiers())) {
      return (member.getName().equals("values") && parameters.isEmpty())
          || (member.getName().equals("valueOf") && parameters.equals(List.of(String.class)));
    }
    return declaresObjectMethod(member.getName(), parameters);
  }

  private static boolean declaresObjectMethod(String name, List<Class<?>> parameters) {
    return Arrays.stream(Object.class.getDeclaredMethods())
        .anyMatch(method ->
            method.getName().equals(name)
                && List.of(method.getParameterTypes()).equals(parameters));
  }

  private static String describe(Class<?> type, Member member) {
    String prefix = Modifier.isProtected(member.getModifiers()) ? "protected " : "";
    if (Modifier.isStatic(member.getModifiers()) && !isConstant(member)) {
      prefix += "static ";
    }
    return prefix
        + switch (member) {
          case Field field when isConstant(field) -> field.getName();
          case Field field -> name(field.getGenericType()) + " " + field.getName();
          case Method method ->
              (Modifier.isAbstract(method.getModifiers()) ? "abstract " : "")
                  + variables(method.getTypeParameters())
                  + name(method.getGenericReturnType())
                  + " "
                  + method.getName()
                  + parametersOf(method);
          default -> type.getSimpleName() + parametersOf((Executable) member);
        };
  }

  private static boolean isConstant(Member member) {
    return member instanceof Field field && field.isEnumConstant();
  }

  private static String parametersOf(Executable executable) {
    String parameters =
        Arrays.stream(executable.getGenericParameterTypes())
            .map(PublicApi::name)
            .collect(Collectors.joining(", ", "(", ")"));
    if (executable.getGenericExceptionTypes().length == 0) {
      return parameters;
    }
    return parameters
        + Arrays.stream(executable.getGenericExceptionTypes())
            .map(PublicApi::name)
            .sorted()
            .collect(Collectors.joining(", ", " throws ", ""));
  }

  private static String variables(TypeVariable<?>[] variables) {
    if (variables.length == 0) {
      return "";
    }
    return Arrays.stream(variables)
        .map(each -> {
          List<Type> bounds =
              Arrays.stream(each.getBounds())
                  .filter(bound -> bound != Object.class)
                  .collect(Collectors.toList());
          return bounds.isEmpty()
              ? each.getName()
              : each.getName()
                  + " extends "
                  + bounds.stream().map(PublicApi::name).collect(Collectors.joining(" & "));
        })
        .collect(Collectors.joining(", ", "<", "> "));
  }

  /// Returns a type's name as a source writes it if it imports all types.
  private static String name(Type type) {
    return switch (type) {
      case Class<?> each when each.isArray() -> name(each.getComponentType()) + "[]";
      case Class<?> each when each.getEnclosingClass() != null ->
          name(each.getEnclosingClass()) + "." + each.getSimpleName();
      case Class<?> each -> each.getSimpleName();
      case ParameterizedType each ->
          name(each.getRawType())
              + Arrays.stream(each.getActualTypeArguments())
                  .map(PublicApi::name)
                  .collect(Collectors.joining(", ", "<", ">"));
      case GenericArrayType each -> name(each.getGenericComponentType()) + "[]";
      case WildcardType each when each.getLowerBounds().length > 0 ->
          "? super " + name(each.getLowerBounds()[0]);
      case WildcardType each when each.getUpperBounds()[0] != Object.class ->
          "? extends " + name(each.getUpperBounds()[0]);
      default -> type.getTypeName();
    };
  }

  /// Returns all types that the type's header and its visible members name.
  private static Stream<Type> signatureTypes(Class<?> type) {
    List<Type> named = new ArrayList<>();
    if (type.getGenericSuperclass() != null) {
      named.add(type.getGenericSuperclass());
    }
    named.addAll(List.of(type.getGenericInterfaces()));
    addBounds(named, type.getTypeParameters());
    if (type.isRecord()) {
      Arrays.stream(type.getRecordComponents())
          .map(RecordComponent::getGenericType)
          .forEach(named::add);
    }
    members(type)
        .forEach(member -> {
          if (member instanceof Field field) {
            named.add(field.getGenericType());
          }
          if (member instanceof Executable executable) {
            named.addAll(List.of(executable.getGenericParameterTypes()));
            named.addAll(List.of(executable.getGenericExceptionTypes()));
            addBounds(named, executable.getTypeParameters());
          }
          if (member instanceof Method method) {
            named.add(method.getGenericReturnType());
          }
        });
    return named.stream();
  }

  private static void addBounds(List<Type> to, TypeVariable<?>[] variables) {
    for (TypeVariable<?> variable : variables) {
      to.addAll(List.of(variable.getBounds()));
    }
  }

  private static Stream<Class<?>> classesIn(Type type) {
    return switch (type) {
      case Class<?> each when each.isArray() -> classesIn(each.getComponentType());
      case Class<?> each -> Stream.of(each);
      case ParameterizedType each ->
          Stream.concat(
              classesIn(each.getRawType()),
              Arrays.stream(each.getActualTypeArguments()).flatMap(PublicApi::classesIn));
      case GenericArrayType each -> classesIn(each.getGenericComponentType());
      case WildcardType each ->
          Stream.concat(Arrays.stream(each.getUpperBounds()), Arrays.stream(each.getLowerBounds()))
              .flatMap(PublicApi::classesIn);
      // The bounds of a type variable are examined where the variable is declared.
      default -> Stream.empty();
    };
  }
}
